"""Tells what a row of a table or result has touched: the results that are made of it, and which of their rows."""

from collections.abc import Iterator

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.explain.explanation import Finding
from lakejoin.orchestration.explain.log_rows import MOST, Key, Logs
from lakejoin.orchestration.explain.messages import exchange, subscribers
from lakejoin.orchestration.explain.sentences import counted, first_of
from lakejoin.storage.delta_log.arrow_query import identifier
from lakejoin.storage.lake.layout import joined_of, response_log_of
from lakejoin.transforms.model.result_spec import ResultSpec
from lakejoin.transforms.model.schemas import BATCH
from lakejoin.transforms.model.specs import JoinSpec


def impact(pipeline: Pipeline, logs: Logs, name: str, key: Key) -> tuple[Finding, ...]:
    """Return what was made of a row, result by result. Raises `LakeUnusable` and `LakeInconsistent`."""
    found = [
        finding
        for result in pipeline.joins
        if name in pipeline.spec_of_join(result).reads
        for finding in _of_result(pipeline, logs, name, key, pipeline.spec_of_join(result))
    ]
    return tuple(found) or (Finding(f"no result of {pipeline.name} is made of {name}"),)


def _of_result(pipeline: Pipeline, logs: Logs, name: str, key: Key, result: ResultSpec) -> Iterator[Finding]:
    if name == result.left:
        yield _as_left(pipeline, logs, key, result)
    for part in result.parts:
        if part.right == name and result.name not in pipeline.groups:
            yield (
                _met(logs, key, part)
                if result.name in pipeline.joins_of_streams
                else _as_right(logs, key, part)
            )


def _as_left(pipeline: Pipeline, logs: Logs, key: Key, result: ResultSpec) -> Finding:
    """What became of a row as a left one: its own rows of the result, and what is made of these."""
    if result.name in pipeline.groups:
        group = exchange(logs, result.parts[0], key).refers_to
        return Finding(f"{result.name}: the row counts in {'its group' if group is None else group}")
    where = key.among(result.joined_left_key)
    rows = logs.rows(joined_of(result.name), [*result.joined_key, BATCH], where, most=MOST)
    keys = [Key(result.joined_key_type, tuple(row[column] for column in result.joined_key)) for row in rows]
    if not rows:
        return Finding(f"{result.name}: no row")
    further = [finding for one in keys for finding in impact(pipeline, logs, result.name, one)]
    is_read = any(result.name in pipeline.spec_of_join(name).reads for name in pipeline.joins)
    written = ", ".join(f"{one} (batch {row[BATCH]})" for one, row in zip(keys, rows, strict=True))
    return Finding(
        f"{result.name}: {written}", {"rows": [one.texts for one in keys]}, tuple(further) if is_read else ()
    )


def _as_right(logs: Logs, key: Key, part: JoinSpec) -> Finding:
    """Which left rows are subscribed to a row, and how many its changes have reached."""
    held = key.in_struct("foreign_key")
    reached = logs.ask(
        response_log_of(part.name),
        f"SELECT {BATCH}, count(*) AS n FROM rows WHERE {held} AND cause = 'right_change' AND resolution = 'applied' "
        f"GROUP BY {BATCH} ORDER BY {BATCH} DESC LIMIT {MOST}",
    )
    changes = [
        Finding(
            f"batch {row[BATCH]}: its change reached {counted(row['n'], 'row')}",
            {"batch": row[BATCH], "rows": row["n"]},
        )
        for row in reached
    ]
    number, first = subscribers(logs, part, held)
    refer = f"{counted(number, 'row')} of {part.left} refer{'s' * (number == 1)} to it"
    return Finding(
        f"{part.name.partition('/')[0]}: {refer}{first_of(number, first)}",
        {"referring": number, "first": first},
        tuple(changes),
    )


def _met(logs: Logs, key: Key, part: JoinSpec) -> Finding:
    """How many events of a stream have met a row."""
    names = part.joined_right_key
    if names is None:
        return Finding(
            f"{part.name}: its rows do not have the key of {part.right}; events that met it cannot be told"
        )
    number = logs.count(
        joined_of(part.name), f"{key.among(names)} AND {identifier('_lj_right_hash')} IS NOT NULL"
    )
    return Finding(f"{part.name}: {counted(number, 'event')} of {part.left} met it", {"events": number})
