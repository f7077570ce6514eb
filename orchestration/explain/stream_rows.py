"""Says what became of an event of a stream, and what it met in the joins of the stream (KIP-923)."""

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.explain.columns import column_of
from lakejoin.orchestration.explain.explanation import Explanation, Finding
from lakejoin.orchestration.explain.joined_rows import Explain
from lakejoin.orchestration.explain.log_rows import MOST, Key, Logs, Row, time_text
from lakejoin.orchestration.explain.records import BY_PLACE, Records, stream_records
from lakejoin.orchestration.explain.sentences import counted, listed, place, shown_values
from lakejoin.orchestration.explain.versions import said, versions
from lakejoin.storage.lake.layout import joined_of
from lakejoin.transforms.model.schemas import (
    BATCH,
    POSITION,
    RIGHT_HASH,
    TIME,
    VALID_FROM,
    VALID_TO,
    VERDICT,
    quoted,
)
from lakejoin.transforms.model.specs import StreamJoinSpec
from lakejoin.transforms.stream_join.table_join import ACCEPTED

_STAYS = "nothing: what was decided about an event stays"


def explain_record(pipeline: Pipeline, logs: Logs, name: str, key: Key) -> Explanation:
    """Explain the events of a stream that have a key. Raises what reading the logs raises."""
    records = stream_records(logs, pipeline.streams[name].spec, key)
    events = [row for row in records.rows if row[VERDICT] in ACCEPTED]
    return Explanation(
        name,
        key.texts,
        logs.batch,
        bool(events),
        f"{records.called}: {_counted(records)}",
        records.findings,
        (_STAYS,) if events else ("a record of it",),
    )


def explain_event(pipeline: Pipeline, logs: Logs, name: str, key: Key, explain: Explain) -> Explanation:
    """Explain what a stream's join made of the events that have a key. Raises what reading the logs raises."""
    join = pipeline.stream_join_spec(name)
    records = stream_records(logs, pipeline.streams[join.left].spec, key)
    made = _made(logs, join, key)
    events = [row for row in records.rows if row[VERDICT] in ACCEPTED]
    findings = [_of_event(pipeline, logs, join, row, made, explain) for row in events]
    records_read = Finding(f"records of {join.left}", because=records.findings)
    if made:
        answer = f"{name} {key} is there: " + "; ".join(_joined(join, row) for row in made.values())
    elif findings:
        answer = f"{name} {key} is not there: {findings[-1].says}"
    else:
        answer = f"{name} {key} is not there: {_counted(records)}"
    following = (_STAYS,) if findings else ("a record of it",)
    if any(place(row) not in made and _waits(logs, join, row) for row in events):
        following = ("the end of its grace period",)
    return Explanation(
        name,
        key.texts,
        logs.batch,
        bool(made),
        answer,
        (*findings, records_read),
        following,
        _columns(join, made),
    )


def _columns(join: StreamJoinSpec, made: dict[str, Row]) -> dict[str, Finding]:
    """Where the columns of the last joined row come from: its event, or what that met."""
    if not made:
        return {}
    row = list(made.values())[-1]
    event = f"the event at {place(row)}"
    met = f"the row of {join.right} that it met" if row[RIGHT_HASH] is not None else f"no row of {join.right}"
    sources = dict.fromkeys(join.left_columns.names, event)
    sources |= {join.prefix + name: met for name in join.right_columns.names}
    pairs = {name: Finding(f"{name} is of {source}") for name, source in sources.items()}
    return {
        name: column_of(join, name, text, pairs) for name, text in shown_values(row, join.columns).items()
    }


def _counted(records: Records) -> str:
    if not records.rows:
        return records.answer.partition(": ")[2]
    events = sum(row[VERDICT] in ACCEPTED for row in records.rows)
    if events:
        late = sum(row[VERDICT] == "late" for row in records.rows)
        came = f", {late} of them late" if late else ""
        return f"{counted(events, 'event')} in {counted(records.in_all, 'record')}{came}"
    return f"no event in {counted(records.in_all, 'record')}; the last one is {records.rows[-1][VERDICT]}"


def _made(logs: Logs, join: StreamJoinSpec, key: Key) -> dict[str, Row]:
    """The joined rows of a key, by where their records stood."""
    names = [*join.columns.names, BATCH, POSITION, TIME, RIGHT_HASH]
    rows = logs.rows(joined_of(join.name), names, key.among(join.joined_key), last_by=BY_PLACE, most=MOST)
    return {place(row): row for row in rows}


def _joined(join: StreamJoinSpec, row: Row) -> str:
    met = f"with a row of {join.right}" if row[RIGHT_HASH] is not None else f"without a row of {join.right}"
    return f"the event at {place(row)} was joined in batch {row[BATCH]} {met}"


def _of_event(
    pipeline: Pipeline, logs: Logs, join: StreamJoinSpec, event: Row, made: dict[str, Row], explain: Explain
) -> Finding:  # fmt: skip
    row = made.get(place(event))
    right = _right_key(join, event, row)
    below = _right(pipeline, logs, join, event, right, explain)
    if row is None:
        return Finding(_why_absent(logs, join, event, right), because=below)
    values = shown_values(row, join.columns)
    return Finding(_joined(join, row), {"row": values}, (Finding(f"the row: {listed(values)}"), *below))


def _right_key(join: StreamJoinSpec, event: Row, row: Row | None) -> Key | None:
    """The key of the table that an event refers to; None where it has none, or only Spark can compute it."""
    plain = {quoted(name): name for name in join.left_columns.names}
    if all(text in plain for text in join.foreign_key):
        values = [event[plain[text]] for text in join.foreign_key]
    elif row is not None and join.joined_right_key is not None:
        values = [row[name] for name in join.joined_right_key]
    else:
        return None
    return None if None in values else Key(join.foreign_key_type, tuple(values))


def _right(
    pipeline: Pipeline, logs: Logs, join: StreamJoinSpec, event: Row, key: Key | None, explain: Explain
) -> tuple[Finding, ...]:  # fmt: skip
    if key is None:
        return ()
    if not join.as_of:
        found = explain(join.right, key)
        return (Finding(f"{found.answer} (as it is now)", because=found.findings),)
    table, time = pipeline.tables[join.right].spec, event[TIME]
    known = versions(logs, table, key)
    valid = [
        row for row in known if row[VALID_FROM] <= time and (row[VALID_TO] is None or time < row[VALID_TO])
    ]
    says = f"{join.right} {key} at its time, {time_text(time)}"
    if not valid:
        return (Finding(f"{says}: no version is known"),)
    return (Finding(f"{says}: {said(valid[0])}", {"row": shown_values(valid[0], table.columns)}),)


def _why_absent(logs: Logs, join: StreamJoinSpec, event: Row, right: Key | None) -> str:
    at, clock = f"the event at {place(event)}", logs.plan.clocks.get(f"joins/{join.name}")
    if event[VERDICT] == "late":
        return f"{at} came after its grace period of {join.grace}, and was dropped as late"
    if _waits(logs, join, event):
        assert join.grace is not None
        now = "not known yet" if clock is None else time_text(clock)
        return f"{at} waits until the stream's time has passed {time_text(event[TIME] + join.grace)}; it is {now}"
    if right is None and join.how == "inner":
        return f"{at} refers to no row of {join.right}, and the join is an inner one"
    if join.how == "inner":
        return f"{at} met no row of {join.right} {right or ''}, and the join is an inner one"
    if join.where is not None:
        return f"{at} does not meet the condition of the join: {join.where}"
    return f"{at} came before the join was begun"


def _waits(logs: Logs, join: StreamJoinSpec, event: Row) -> bool:
    """Whether an event waits for its grace period to pass."""
    if join.grace is None or event[VERDICT] == "late" or event[BATCH] <= logs.plan.released(join.name):
        return False
    clock = logs.plan.clocks.get(f"joins/{join.name}")
    return clock is None or bool(event[TIME] > clock - join.grace)
