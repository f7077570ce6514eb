"""What the models say of one batch: a verdict for every record, a way for each through every join, the rows."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from properties.streams import FAR_FUTURE, GRACE, SKIPPED, Event
from reference.foreign_key_join import How
from reference.stream_table_join import Joined, Late, StreamRecord, StreamTableJoin
from reference.tables import Record, Table, count
from reference.versioned_table import VersionedTable

Position = tuple[str, int]
Placed = tuple[Position, Event]
"""A record with its date and line."""


@dataclass(frozen=True)
class DeclaredJoin:
    """A join of the stream, as the configuration has it."""

    table: str
    how: How
    grace: int | None = None
    late: Late | None = None

    @property
    def configuration(self) -> dict[str, Any]:
        """What stands below its name."""
        join = {"stream": "uses", "table": self.table, "foreign_key": ["fk"], "how": self.how}
        waits = {} if self.grace is None else {"grace": f"{self.grace} milliseconds"}
        return {**join, **waits, **({} if self.late is None else {"late": self.late})}


JOINS: Mapping[str, DeclaredJoin] = {
    "at_once": DeclaredJoin("prices", "left"),
    "waiting": DeclaredJoin("prices", "inner", GRACE),
    "waiting_for_all": DeclaredJoin("prices", "left", GRACE, "join"),
    "newest": DeclaredJoin("latest", "left"),
}
CUT_FREE = ("waiting", "waiting_for_all")
"""Joins whose output does not depend on the cut while the table is late by less than the grace."""


@dataclass(frozen=True)
class Taken:
    """What a batch must amount to."""

    COLUMNS: ClassVar = ("id", "fk", "v", "ts", "seq", "right_k", "right_v", "right_ts", "right_seq")

    inputs: Mapping[str, Counter[str]]
    """Counts of each table and stream."""
    joins: Mapping[str, Counter[str]]
    rows: Mapping[str, Counter[str]]
    """What each join emits: its `COLUMNS` as JSON."""
    clocks: Mapping[str, int]
    """The time that the table has seen, and those of the joins that wait, by what the lake calls them."""


class _Latest:
    """A table without history, as a join looks it up."""

    def __init__(self) -> None:
        self.table = Table()

    def look_up(self, key: Any, time: int) -> Any:
        found = self.table.current().get(key)
        return None if found is None else found["row"]


class _History(VersionedTable):
    """A table with history, as a batch looks it up: no further back than its clock before the batch reaches."""

    before: int | None = None

    def look_up(self, key: Any, time: int) -> Any:
        found = self.get_by(self.before, key, time)
        return None if found is None else found.value


class StreamModel:
    """The tables, the stream and its joins."""

    def __init__(self, history_retention: int) -> None:
        self._prices, self._latest = _History(history_retention), _Latest()
        self._seen: set[tuple[int, int]] = set()
        tables = {"prices": self._prices, "latest": self._latest}
        self._joins = {
            name: StreamTableJoin(join.how, tables[join.table], join.grace, join.late or "drop")
            for name, join in JOINS.items()
        }

    def take(self, latest: Sequence[Placed], prices: Sequence[Placed], uses: Sequence[Placed]) -> Taken:
        """Take a batch, tables first; each input's records in the order of their positions."""
        self._prices.before = self._prices.observed
        inputs = {
            "latest": self._take_latest(latest),
            "prices": _counted(self._price(*placed) for placed in prices),
        }
        records: list[StreamRecord] = []
        verdicts = []
        for _, event in uses:
            verdicts.append(self._use(event))
            if verdicts[-1] == "applied":
                assert event.time is not None
                row = (event.id, event.key, event.value, event.time, event.sequence)
                records.append(StreamRecord(event.key, row, event.time))
        return self._join({**inputs, "uses": _counted(verdicts)}, records)

    def flush(self) -> Taken:
        """Release whatever waits."""
        self._prices.before = self._prices.observed
        return self._join({}, None)

    def _take_latest(self, placed: Sequence[Placed]) -> Counter[str]:
        good = [(position, event) for position, event in placed if event.key is not None]
        judged = self._latest.table.take(
            Record(
                event.key, "delete" if event.value is None else "upsert", (position[0], "", position[1]),
                None if event.value is None else {"row": _row(event)}, event.sequence,
            )
            for position, event in good
        )  # fmt: skip
        bad = len(placed) - len(good)
        return count(judged) + Counter(records=bad, quarantined=bad)

    def _price(self, position: Position, event: Event) -> str:
        if event.key is None or event.time in {None, FAR_FUTURE}:
            return "quarantined"
        assert event.time is not None
        value = None if event.value is None else _row(event)
        return self._prices.put(event.key, value, event.time, event.sequence, position)

    def _use(self, event: Event) -> str:
        if event.id is None or event.time in {None, FAR_FUTURE}:
            return "quarantined"
        if event.value in {None, SKIPPED}:
            return "ignored"
        identity = (event.id, event.sequence)
        if identity in self._seen:
            return "duplicate"
        self._seen.add(identity)
        return "applied"

    def _join(self, inputs: Mapping[str, Counter[str]], records: list[StreamRecord] | None) -> Taken:
        counts, rows = {}, {}
        for name, join in self._joins.items():
            before, waited = join.routes.copy(), len(join.buffer)
            joined = join.flush() if records is None else join.take(records)
            routes = join.routes - before
            counts[name] = Counter(
                received=routes.total(), at_once=routes["at_once"], buffered=routes["waits"],
                late=routes["late"], ignored=routes["ignored"], waiting=len(join.buffer),
                released=waited + routes["waits"] - len(join.buffer), emissions=len(joined),
                unmatched=sum(one.right is None for one in joined),
            )  # fmt: skip
            rows[name] = Counter(map(_shown, joined))
        clocks = {f"joins/{name}": join.stream_time for name, join in self._joins.items()}
        clocks["tables/prices"] = self._prices.observed
        return Taken(inputs, counts, rows, {n: time for n, time in clocks.items() if time is not None})


def _counted(verdicts: Iterable[str]) -> Counter[str]:
    """Records by verdict; what enters history late is out of order for its key all the same."""
    counts = Counter(verdicts)
    counts["records"] = counts.total()
    counts["out_of_order"] += counts["history"]
    return counts


def _row(event: Event) -> tuple[Any, ...]:
    return (event.key, event.value, event.time, event.sequence)


def _shown(joined: Joined) -> str:
    right = (None,) * 4 if joined.right is None else joined.right
    return json.dumps([*joined.record.value, *right])
