"""Tells what became of the source records of a key: of a declared table or of a stream."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql.types import StructType

from lakejoin.orchestration.explain.explanation import Finding, shown
from lakejoin.orchestration.explain.log_rows import MOST, Key, Logs, Row, value_text
from lakejoin.orchestration.explain.sentences import counted, place, shown_values
from lakejoin.storage.delta_log.arrow_query import identifier, text_literal
from lakejoin.storage.lake.layout import QUARANTINE, changes_of, records_of
from lakejoin.transforms.model.schemas import (
    BATCH,
    CURRENT,
    DELETED,
    DERIVED,
    HASH,
    OP,
    POSITION,
    POSITION_TYPE,
    SEQUENCE,
    VERDICT,
    Op,
    Verdict,
    changes_schema,
)
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.stream_join.records import stream_schema
from lakejoin.transforms.stream_join.table_join import ACCEPTED

BY_PLACE = (BATCH, *[f"{identifier(POSITION)}['{part}']" for part in ("date", "file", "line")])
"""The order in which records were read."""
OPERATIONS: Mapping[Op, str] = {
    "upsert": "new or changed row",
    "delete": "delete",
    "filtered": "row that the condition of its table leaves out",
    "tombstone": "tombstone",
    "truncate": "truncation of the table",
    "ignored": "record that is no change",
    "restored": "state without a file that was replaced",
}
VERDICTS: Mapping[Verdict, str] = {
    "applied": "applied",
    "history": "out of order: too old for the row, kept as a version",
    "out_of_order": "out of order: a later one was applied before, so it changes nothing",
    "duplicate": "duplicate of the one that was applied, so it changes nothing",
    "tombstone": "tombstone that repeats the delete before it",
    "expired": "expired: older than what the lake remembers of the key, so it changes nothing",
    "late": "late: it came after its grace period, and no join took it",
    "ignored": "ignored: no event of the stream, by its condition or because it deletes",
    "quarantined": "quarantined: it could not be accepted",
}


@dataclass(frozen=True)
class Records:
    """The newest source records of a key in the order in which they were read, the one that decides among them."""

    table: TableSpec
    key: Key
    rows: Sequence[Row]
    in_all: int
    """How many records the key has."""
    suspects: Sequence[Row]
    """Records in quarantine whose text says the key."""
    raw: Callable[[str, Row], str] | None = None

    @property
    def current(self) -> Row | None:
        """The change that is the state of the key; None where none came, and for a stream."""
        return next((row for row in reversed(self.rows) if row.get(CURRENT)), None)

    @property
    def made_by(self) -> Row | None:
        """The record that made that state; a duplicate of it that came since only has its place."""
        now = self.current
        if now is None or now[VERDICT] != "duplicate":
            return now
        same = [row for row in self.rows if row[VERDICT] == "applied" and row[SEQUENCE] == now[SEQUENCE]]
        return same[-1] if same else now

    @property
    def is_there(self) -> bool:
        """Whether the key has a live row."""
        return self.current is not None and not self.current[DELETED]

    @property
    def called(self) -> str:
        """The row, as sentences name it."""
        return f"{self.table.name} {self.key}"

    @property
    def answer(self) -> str:
        """Why the row is there or not."""
        row = self.made_by
        if row is None:
            seen = "none of its records was applied" if self.rows else "no record of it was ever accepted"
            return f"{self.called} is not there: {seen}{self._suspected}"
        if self.is_there:
            return f"{self.called} is there, as the record at {place(row)} made it in batch {row[BATCH]}"
        how = {"truncate": "by a truncation of the table", "filtered": f"by its condition: {self._condition}"}
        by = how.get(row[OP], "by a delete")
        return f"{self.called} is not there: taken away {by}, {place(row)}, in batch {row[BATCH]}"

    @property
    def values(self) -> dict[str, str | None]:
        """Its declared columns; none where it is not there."""
        return shown_values(self.current, self.table.columns) if self.current and self.is_there else {}

    @property
    def columns(self) -> dict[str, Finding]:
        """Of each column of a live row which record gave it its value."""
        return {name: self._since(name, text) for name, text in self.values.items()}

    def _since(self, name: str, text: str | None) -> Finding:
        """The first record of those that went on saying the value that a column has now."""
        assert self.made_by is not None
        first, now, known = self.made_by, self.made_by[name], self.in_all == len(self.rows)
        for row in reversed([row for row in self.rows if row.get(CURRENT)]):
            if row[DELETED] or row[name] != now:
                known = True
                break
            first = row
        says = f"{name} of {self.called} is {shown(text)}"
        record = f"{'' if known else 'at least '}since the record at {place(first)}, batch {first[BATCH]}"
        return Finding(f"{says}, {record}", {"value": text, "at": place(first), "batch": first[BATCH]})

    @property
    def _condition(self) -> str:
        return self.table.where.text if self.table.where else "where"

    @property
    def _suspected(self) -> str:
        number = len(self.suspects)
        return f"; {number} in quarantine may be of it" if number else ""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """A sentence for each record, in the order in which they were read; then the suspects."""
        found = [self._of_record(row) for row in self.rows]
        if self.in_all > len(self.rows):
            found.insert(0, Finding(f"left out: {counted(self.in_all - len(self.rows), 'older record')}"))
        found += [
            Finding(
                f"batch {row[BATCH]}: in quarantine, {place(row)}, its text has this key: {row['reason']}"
                + (f" ({row['detail']})" if row["detail"] else ""),
                {"batch": row[BATCH], "at": place(row), "reason": row["reason"], "raw": row["raw"]},
            )
            for row in self.suspects
        ]
        return tuple(found)

    def _of_record(self, row: Row) -> Finding:
        what, verdict = OPERATIONS[row[OP]] if OP in row else "record", row[VERDICT]
        says = VERDICTS[verdict]
        if verdict == "applied" and CURRENT in row:
            says = self._applied(row)
        derived = ", derived from what stands there" if row.get(DERIVED) else ""
        order = self._order(row)
        known = "".join(f", {name.removeprefix('_lj_')} {text}" for name, text in order.items() if text)
        return Finding(
            f"batch {row[BATCH]}: {what}, {place(row)}{derived}{known}: {says}",
            {
                "batch": row[BATCH],
                "operation": row.get(OP),
                "status": verdict,
                "at": place(row),
                "sequence": order,
            }
            | {"row": shown_values(row, self.table.columns)},
            () if self.raw is None else (Finding(self.raw(self.table.name, row)),),
        )

    def _order(self, row: Row) -> dict[str, str | None]:
        """What orders the changes of the key, beside the place of the record."""
        place_alone = set(POSITION_TYPE.names) if set(POSITION_TYPE.names) <= set(row[SEQUENCE]) else set()
        fields = [field for field in self.table.sequence if field.name not in place_alone]
        return {field.name: value_text(row[SEQUENCE][field.name], field.dataType) for field in fields}

    def _applied(self, row: Row) -> str:
        if row is self.made_by:
            return "applied; nothing has changed it since"
        if row[CURRENT]:
            return "applied, the row until a later batch changed it"
        return "applied, and changed again within its batch"


def table_records(logs: Logs, table: TableSpec, key: Key) -> Records:
    """Return the records of a key of a declared table. Raises `LakeUnusable` and `LakeInconsistent`."""
    schema = changes_schema(table.columns, table.sequence)
    return _records(logs, changes_of(table.name), table, key, schema, CURRENT)


def stream_records(logs: Logs, stream: TableSpec, key: Key) -> Records:
    """Return the records of a key of a stream; each is an event. Raises as `table_records`."""
    events = f"{VERDICT} IN ({', '.join(map(text_literal, ACCEPTED))})"
    return _records(logs, records_of(stream.name), stream, key, stream_schema(stream), events)


def _records(
    logs: Logs, log: str, table: TableSpec, key: Key, schema: StructType, decides: str
) -> Records:  # fmt: skip
    """`decides`: the condition of the records of which the newest must be known, however many came after it."""
    columns = [name for name in schema.names if name != HASH]
    where = key.among(table.key)
    rows = logs.rows(log, columns, where, last_by=BY_PLACE)
    in_all = len(rows) if len(rows) < MOST else logs.count(log, where)
    if in_all > len(rows):
        known = [(row[BATCH], place(row)) for row in rows]
        deciding = logs.rows(log, columns, f"{where} AND {decides}", last_by=BY_PLACE, most=1)
        applied = logs.rows(
            log, columns, f"{where} AND {decides} AND {VERDICT} = 'applied'", last_by=BY_PLACE, most=1
        )
        older = {(row[BATCH], place(row)): row for row in (*applied, *deciding)}
        rows = [*[row for at, row in older.items() if at not in known], *rows]
    return Records(table, key, rows, in_all, _suspects(logs, table, key, rows), logs.raw)


def _suspects(logs: Logs, table: TableSpec, key: Key, logged: Sequence[Row]) -> list[Row]:
    """The newest records in quarantine whose text says the key, in JSON by its names; they were not parsed so far."""
    if None in key.texts:
        return []
    says = [
        f"regexp_like(raw, {text_literal(_said(table.name_in_source(name), text or ''))})"
        for name, text in zip(table.key, key.texts, strict=True)
    ]
    columns = [BATCH, "date", "file", "line", "reason", "detail", "raw"]
    where = " AND ".join([f'"table" = {text_literal(table.name)}', *says])
    found = logs.rows(QUARANTINE, columns, where, last_by=(BATCH, "file", "line"), most=5)
    places = set(map(place, logged))
    return [row for row in found if place(row) not in places]


def _said(name: str, text: str) -> str:
    """The pattern of a text that has a value: of JSON beside its name, of any other text as a word."""
    value, end = re.escape(text), "([^0-9A-Za-z_.]|$)"
    in_json = rf'{re.escape(name)}\\?"\s*:\s*\\?"?{value}{end}'
    return rf"{in_json}|^[^{{]*(^|[^0-9A-Za-z_.]){value}{end}"
