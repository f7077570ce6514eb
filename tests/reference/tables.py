"""Tables of change data, one record at a time, in plain Python: which records count, and what is joined then.

A key's records are applied in the order of their position, each compared with the sequence of the key's row.
What the table holds in the end must not depend on how its records were cut into batches or in which order
days were read, so a row remembers its position: of equal sequences, the record that stands later wins.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

from reference.foreign_key_join import How

LeftKey = TypeVar("LeftKey", bound=Hashable)
LeftValue = TypeVar("LeftValue")
RightKey = TypeVar("RightKey", bound=Hashable)
RightValue = TypeVar("RightValue")
Key = Hashable
Value = Mapping[str, Any]
Position = tuple[str, str, int]
"""Date, file name and line of a record."""
Op = Literal["upsert", "delete", "tombstone", "ignored"]
Verdict = Literal["applied", "out_of_order", "duplicate", "tombstone", "expired", "ignored", "quarantined"]


@dataclass(frozen=True)
class Record:
    """One line of a source, without sequence where the position orders; a delete may lack one too."""

    key: Key
    op: Op
    position: Position
    value: Value | None = None
    sequence: Any = None
    unavailable: tuple[str, ...] = ()
    """Columns that the source left out because they did not change."""
    derived: bool = False
    """True for a delete that stands for no line of its own."""


@dataclass(frozen=True)
class Row:
    """What a table knows of a key; value None is the tombstone of a deleted one."""

    value: Value | None
    sequence: Any
    position: Position


@dataclass(frozen=True)
class Judged:
    """A record with what became of it; `tie`: it replaced other content of the same sequence."""

    record: Record
    verdict: Verdict
    tie: bool = False


@dataclass
class Table:
    """The rows of a table, tombstones included."""

    by_position: bool = False
    """True where no sequence is declared."""
    rows: dict[Key, Row] = field(default_factory=dict)
    purged: dict[Key, Row] = field(default_factory=dict)
    """The tombstones that the rows have forgotten: what comes late for one of them is expired."""
    _deletes: set[tuple[Position, Key]] = field(default_factory=set)

    def take(self, batch: Iterable[Record]) -> list[Judged]:
        """Apply a batch and return its records, in the order of position, with their verdicts."""
        return [self._take(record) for record in sorted(batch, key=lambda record: record.position)]

    def current(self) -> dict[Key, Value]:
        """The rows that exist, by key."""
        return {key: row.value for key, row in self.rows.items() if row.value is not None}

    def purge(self, keys: Collection[Key]) -> None:
        """Forget the tombstones among these keys."""
        purged = [key for key in keys if key in self.rows and self.rows[key].value is None]
        for key in purged:
            self.purged[key] = self.rows.pop(key)

    def _take(self, record: Record) -> Judged:
        sequence = record.position if self.by_position else record.sequence
        row = self.rows.get(record.key, self.purged.get(record.key))
        if record.op == "delete" and not record.derived:
            self._deletes.add((record.position, record.key))
        if record.op == "ignored":
            return Judged(record, "ignored")
        if record.op == "tombstone" and self._follows_its_delete(record):
            return Judged(record, "tombstone")
        if sequence is None:
            # a delete without a sequence of its own stands where its key stands
            return self._delete_in_place(record, row)
        if row is not None and row.value is not None:
            record = _filled(record, row.value)
        judged = self._judge(record, row, sequence)
        if judged.verdict == "applied":
            self.rows[record.key] = Row(record.value, sequence, record.position)
        elif judged.verdict == "duplicate" and row is not None:
            self.rows[record.key] = replace(row, position=max(row.position, record.position))
        return judged

    def _delete_in_place(self, record: Record, row: Row | None) -> Judged:
        if row is None or row.value is None:
            return Judged(record, "tombstone")
        if record.position < row.position:
            return Judged(record, "out_of_order")
        self.rows[record.key] = Row(None, row.sequence, record.position)
        return Judged(record, "applied")

    def _judge(self, record: Record, row: Row | None, sequence: Any) -> Judged:
        late = row is not None and (sequence, record.position) < (row.sequence, row.position)
        if late and record.key not in self.rows:
            return Judged(record, "expired")
        if record.unavailable and not late:
            return Judged(record, "quarantined")
        if row is not None and (sequence, record.value) == (row.sequence, row.value):
            return Judged(record, "duplicate")
        if late:
            return Judged(record, "out_of_order")
        return Judged(record, "applied", tie=row is not None and sequence == row.sequence)

    def _follows_its_delete(self, record: Record) -> bool:
        """True if the line before it deletes the same key: Debezium writes a delete as two lines."""
        date, file, line = record.position
        return ((date, file, line - 1), record.key) in self._deletes


def _filled(record: Record, known: Value) -> Record:
    """The record with the values it left out, as its key had them."""
    if record.value is None or not record.unavailable:
        return record
    kept = {column: known[column] for column in record.unavailable}
    return replace(record, value={**record.value, **kept}, unavailable=())


def count(judged: Iterable[Judged]) -> Counter[str]:
    """Records by verdict, their number as `records`, ties (which are applied) as `tie`."""
    counts: Counter[str] = Counter()
    for one in judged:
        counts[one.verdict] += 1
        counts["records"] += 1
        counts["tie"] += one.tie
    return counts


def relational_join(
    left: Mapping[LeftKey, LeftValue],
    right: Mapping[RightKey, RightValue],
    foreign_key: Callable[[LeftValue], RightKey | None],
    how: How,
) -> dict[LeftKey, tuple[LeftValue, RightValue | None]]:
    """Return the inner or left join of current rows by left key: the left row, and the right row or None."""
    joined = {}
    for key, value in left.items():
        wanted = foreign_key(value)
        found = None if wanted is None else right.get(wanted)
        if found is not None or how == "left":
            joined[key] = (value, found)
    return joined
