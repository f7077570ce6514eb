"""Proposes tables: what is declared of each, with a word on all that was guessed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lakejoin.orchestration.proposals.keys import is_there, key_of, sequence_of
from lakejoin.orchestration.proposals.names import column_name, known_type, table_name
from lakejoin.orchestration.proposals.operations import beside, operation_of, taken_apart
from lakejoin.orchestration.proposals.records import Record
from lakejoin.orchestration.proposals.values import Guess, Writing, guess
from lakejoin.transforms.parsing.row_ops import PRESETS


@dataclass(frozen=True)
class Sample:
    """The first records of what lies at a path."""

    name: str
    """What the table may be called."""
    source: Mapping[str, Any]
    """The keys of the source that are known: format, path, how it is written."""
    records: Sequence[Record]
    names: Sequence[str] = ()
    """Columns that the files name beside their records."""
    types: Mapping[str, str] = field(default_factory=dict)
    """Types that the files themselves say."""
    is_load: bool = False
    """Files have the names that DMS gives those of a full load."""


@dataclass(frozen=True)
class Column:
    """A column as it is declared."""

    type: str
    source_name: str | None = None
    encoding: str | None = None
    note: str = ""


@dataclass(frozen=True)
class Table:
    """A table as it is proposed. A note says why something was guessed, and becomes a comment."""

    name: str
    source: Mapping[str, Any]
    columns: Mapping[str, Column]
    key: tuple[str, ...]
    sequence: str | tuple[str, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    """By `source`, `key` and `sequence`."""
    rows: Sequence[Mapping[str, Any]] = ()
    """The rows of the sample, by the declared names."""
    needs_sequence: bool = False
    """Without one the source is refused."""

    @property
    def missing(self) -> str:
        """What has to be said for the table to be usable; empty where nothing is missing."""
        if not self.columns:
            return "no record of the sample has a row"
        if not self.key:
            return "no column is unique in the sample; say what identifies a row"
        if self.needs_sequence and not self.sequence:
            return (
                "nothing orders its changes, and a full load may have names behind them; let DMS write "
                "`TimestampColumnName`"
            )
        return ""


def tables_of(sample: Sample) -> list[Table]:
    """Return a table for each table of the database that has records in a sample, with names that may collide."""
    is_event = sample.source["format"] == "debezium"
    said, op = (None, None) if is_event else operation_of([record.row for record in sample.records])
    if isinstance(said, dict) and sample.is_load:
        said, op = "dms", PRESETS["dms"]
    records = list(sample.records) if op is None else taken_apart(sample.records, op)
    source = dict(sample.source) | ({} if said is None else {"op": said})
    preset = said if isinstance(said, str) else ""
    origins = dict.fromkeys(record.table for record in records if record.table)
    proposed = []
    for origin in origins or [""]:
        own = [record for record in records if record.table in {origin, ""}]
        of_one = source | ({"tables": [origin]} if len(origins) > 1 or (origin and not is_event) else {})
        name = table_name(origin.rpartition(".")[2] or sample.name)
        hidden = set() if op is None else {*op.columns}
        proposed.append(_table(name, replace(sample, source=of_one, records=own), preset, hidden))
    return proposed


def _table(name: str, sample: Sample, preset: str, hidden: set[str]) -> Table:
    form, records = sample.source["format"], sample.records
    writing = Writing(
        is_text=form == "csv" or preset == "canal", is_event=form == "debezium",
        has_zone=preset in {"dms", "datastream", "fivetran"},
    )  # fmt: skip
    names = dict.fromkeys([*sample.names, *(name for record in records for name in record.row)])
    known = {name: dtype for record in records for name, dtype in record.types.items()} | dict(sample.types)
    guesses = {
        name: Guess(known[name])
        if name in known
        else guess(name, [record.row.get(name) for record in records], writing)
        for name in names
        if name not in hidden
    }
    units = {found.unit for found in guesses.values() if found.unit}
    unit = units.pop() if len(units) == 1 else None
    source = dict(sample.source) | ({"time": unit} if unit not in {None, "micros"} else {})
    if writing.has_zone and any(found.type == "timestamp" for found in guesses.values()):
        source["timezone"] = "UTC"
    columns, declared = _columns(guesses, form, each_unit=unit is None)
    for column, (dtype, place) in beside(preset).items():
        columns.setdefault(column, Column(dtype, source_name=place))
    types = {column: said.type for column, said in columns.items()}
    new = [
        replace(record, row={declared.get(name, name): value for name, value in record.row.items()})
        for record in records
    ]
    key, why = key_of(types, new, name)
    sequence, guessed = _sequence(types, new, writing, preset)
    if sequence:
        source.pop("file_order", None)
    if form in {"debezium", "jsonl"} and lacks_columns(new):
        source["absent"] = "keep"
    if sequence == ("__lsn",) and not all(is_there(record.row.get("__lsn")) for record in new):
        source["snapshots"] = "oldest"
    notes = {"key": why, "sequence": guessed}
    if "absent" in source:
        notes["source"] = (
            "updates lack columns that rows before them have: `absent: keep` leaves these as they were"
        )
    if isinstance(source.get("op"), dict):
        notes["source"] = (
            "rows do not say what happened: each is new or changed. Of whole tables: `mode: snapshot`, no `op`"
        )
    return Table(
        name,
        source,
        columns,
        key,
        sequence,
        notes,
        [record.row for record in new],
        needs_sequence=preset == "dms",
    )


def lacks_columns(records: Sequence[Record]) -> bool:
    """Tell whether updates lack columns that rows before them have: they bring what has changed."""
    seen: set[str] = set()
    for record in records:
        if record.row and not record.is_new and seen - record.row.keys():
            return True
        seen |= record.row.keys()
    return False


def _sequence(
    types: Mapping[str, str], records: Sequence[Record], writing: Writing, preset: str
) -> tuple[str | tuple[str, ...], str]:
    """What orders changes, and what is to be said of that."""
    if writing.is_event:
        return ("source", "") if any(record.is_placed for record in records) else ((), "")
    if of_preset := tuple(beside(preset)):
        return of_preset, ""
    if preset == "debezium-unwrapped" and "__lsn" in types:
        return ("__lsn",), ""
    return sequence_of(types, records)


def _columns(
    guesses: Mapping[str, Guess], form: str, *, each_unit: bool
) -> tuple[dict[str, Column], dict[str, str]]:
    """Columns by the names that are declared, and those by the names of the source.

    `each_unit`: times count several units, so each says its own.
    """
    columns: dict[str, Column] = {}
    declared: dict[str, str] = {}
    for name, found in guesses.items():
        written = column_name(name, {column.lower() for column in columns})
        declared[name] = written
        place = f"`{name}`" if form == "jsonl" and ("." in name or name.startswith("$")) else name
        columns[written] = Column(
            known_type(found.type), place if written != name else None, found.unit if each_unit else None,
            found.note,
        )  # fmt: skip
    return columns, declared
