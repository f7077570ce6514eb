"""Refuses input that can be read in two ways before a batch is planned, and says how to declare what is meant."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from lakejoin.orchestration.config import Input
from lakejoin.orchestration.config.schema.model import Table
from lakejoin.orchestration.lake_state.published_snapshot import published_snapshot
from lakejoin.orchestration.planning.input_records import THREADS, InputRecords
from lakejoin.orchestration.planning.pending_input import blamed, new_parts
from lakejoin.storage.errors import LakejoinError
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.sources.planned.planned_file import PlannedFile
from lakejoin.storage.spark.session import jobs_called
from lakejoin.storage.state.pinned_state import State
from lakejoin.transforms.model.printable_text import printable
from lakejoin.transforms.parsing.ambiguity import Answer, Kind


class AmbiguousInput(LakejoinError):
    """New input can be read in two ways, and the configuration does not say in which: declare what is meant."""


def check_unambiguous(read: InputRecords, journal: Journal) -> None:
    """Look at the new input of a plan for what has two meanings. Raises `AmbiguousInput` with all that is found."""
    pipeline = read.pipeline
    with ThreadPoolExecutor(THREADS, thread_name_prefix="question") as pool:
        asked = new_parts(pipeline, read.plan.files)
        found = [pool.submit(_ask, read, journal, table, ranges) for table, ranges in asked]
        lines = [line for answers in found for line in answers.result()]
    if lines:
        raise AmbiguousInput(
            *lines,
            f"Nothing of the batch was planned or written. Say in {pipeline.path} what is meant, then run again.",
        )


def _ask(read: InputRecords, journal: Journal, table: Input, ranges: Sequence[PlannedFile]) -> list[str]:
    begun, name = bool(journal.known_files(table.name)), table.name
    with blamed(table), jobs_called(read.spark, f"{read.pipeline.name}: questions to the input of {name}"):
        found = table.source_format.ambiguities(
            read.spark,
            table.spec.as_read,
            table.parse_options,
            ranges,
            partial(read.asked, name),
            begun=begun,
        )
    return [_line(table, answer) for answer in _differing(read, journal, table, found)]


def _differing(read: InputRecords, journal: Journal, table: Input, found: Sequence[Answer]) -> list[Answer]:
    """The answers whose two readings give two results: a column that is null in every row stays null by both."""
    unseen = {answer.column for answer in found if answer.kind == "absent" and answer.plain == 0}
    if not (unseen and isinstance(table, Table)):
        return list(found)
    held = set[str]()
    if journal.published:
        state = State(read.spark, Lake(read.pipeline.lake), published_snapshot(journal))
        held = state.columns_with_values(table.spec, sorted(unseen))
    return [answer for answer in found if answer.kind != "absent" or answer.column not in unseen - held]


def _line(table: Input, answer: Answer) -> str:
    unit = table.source.time
    template = _SAID.get((answer.kind, answer.column)) or _SAID[answer.kind, ""]
    said = template.format(
        count=f"{answer.doubtful:,}", plain=f"{answer.plain:,}", contrary=f"{answer.contrary:,}",
        total=f"{answer.doubtful + answer.plain:,}", column=answer.column, text=printable(answer.text),
        least=printable(answer.bounds[0]), greatest=printable(answer.bounds[1]),
        unit=unit, other="micros" if unit == "millis" else "millis", declare=_declared(table, answer.column),
    )  # fmt: skip
    return f"table {table.name}: {said} (first in {printable(answer.place)})"


def _declared(table: Input, column: str) -> str:
    """How a column is declared with more than its type, up to what is added."""
    return f'{column}: {{type: "{table.columns[column].type}"' if column in table.columns else ""


_SAID: Mapping[tuple[Kind, str], str] = {
    ("number", ""): (
        'in {count} records column {column} holds what is a number in digits, and in base64 another, such as "{text}"; '
        "{plain} others are only digits, {contrary} only base64 (decimal.handling.mode: precise, Debezium's default). "
        "Expected one of the two: write `{declare}, as: precise}}` for base64, `as: string` for digits"
    ),
    ("binary", ""): (
        'in {count} records column {column} holds what is base64, and hexadecimal as well, such as "{text}"; {plain} '
        "others are only base64, {contrary} only hexadecimal (Debezium's binary.handling.mode). Expected one of the "
        "two: write `{declare}, as: hex}}`, or `as: base64`"
    ),
    ("time", ""): (
        '{count} of {total} times in column {column}, such as "{text}", lie within four months of 1970, or beyond the '
        "years 1 to 9999, if they are {unit}. Expected times of our days: write `{declare}, as: {other}}}`, or "
        "whichever unit it is; `as: {unit}` if they are meant so"
    ),
    ("absent", ""): (
        "{count} updates lack column {column}, which {plain} records have, such as {text}. Expected whole rows: write "
        "`absent: keep` under source if such a column stays as it was, `absent: clear` if it becomes null"
    ),
    ("name", ""): (
        "none of {count} rows has column {column}, but they have {text}. Expected the same capitals: write "
        "`{declare}, from: {text}}}`, or `from: {column}` if it is to be null"
    ),
    ("table", ""): (
        "{count} events are of several tables of the database, such as {least} and {greatest}. Expected those of one: "
        "write `tables: [{text}]` under source, or the names of all that are meant"
    ),
    ("sequence", "tx_id"): (
        "`sequence` begins with tx_id, which numbers transactions as they began, not as they were committed; {count} "
        "events come from {text}. Expected an order of commits: write `sequence: source`, or `trust_sequence: true` "
        "under source if it is meant"
    ),
    ("sequence", "ts_ms"): (
        "`sequence` begins with ts_ms, which is when the connector read a change; {count} events say in source.ts_ms "
        "when it was made. Expected an order of commits: write `sequence: source`, or leave `sequence` out, and the "
        "place in the files decides; or write `trust_sequence: true` under source if it is meant"
    ),
    ("read", "lsn"): (
        "{count} reads of a snapshot have no lsn, so nothing orders them among the changes. Expected a position: write "
        "`snapshots: oldest` under source if each is older than every change, `snapshots: in_order` to have them "
        "quarantined"
    ),
    ("read", ""): (
        "{count} reads of a snapshot (op r) stand among or behind changes, and may be older than these. Expected a "
        "position: write `sequence: source`, or `snapshots: in_order` under source if each is as new as its place "
        "says, as in a topic that Debezium wrote"
    ),
}
"""What is said of each kind, and of what it is about where that makes a difference."""
