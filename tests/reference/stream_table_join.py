"""Kafka Streams' stream-table join with grace (KIP-923), one record at a time, in plain Python.

Only stream records emit. Without grace a record is joined when it arrives; with grace it waits until stream
time, the greatest time of the records that were made to wait, has passed its own by the grace. Records that
arrive in one batch are released together at its end; a batch of one record is what Kafka does.

Kafka dies of a left join with grace on a record without key; here it is emitted at once, with nothing on the
right, as without grace. Kafka joins late records; `late: drop` keeps them aside, as the proposal's text says.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from reference.foreign_key_join import How
from reference.versioned_table import VersionedTable

Late = Literal["drop", "join"]
Route = Literal["at_once", "waits", "late", "ignored"]
"""What a join does with a record that arrives; `late`: it is dropped."""


class Table(Protocol):
    """The side that is looked up."""

    def look_up(self, key: Any, time: int) -> Any:
        """Return the value that a record of this time is joined with, None if there is none."""


@dataclass(frozen=True)
class StreamRecord:
    """A record of the stream, with the key that it looks up: its foreign key."""

    key: Any
    value: Any
    time: int


@dataclass(frozen=True)
class Joined:
    """An output: a stream record with the table's value or None; its time is the record's."""

    record: StreamRecord
    right: Any


class StreamTableJoin:
    """The join of a stream with a table, and what waits in its buffer."""

    def __init__(self, how: How, table: Table, grace: int | None = None, late: Late = "join") -> None:
        """Raise `ValueError` where a grace period cannot be kept: without versions, or without history."""
        if grace is not None and not isinstance(table, VersionedTable):
            raise ValueError("a grace period needs a versioned table")
        if grace is not None and isinstance(table, VersionedTable) and grace > table.history_retention:
            raise ValueError("a grace period must not exceed the history retention")
        self.how: How = how
        self.table = table
        self.grace = grace
        self.late: Late = late
        self.buffer: list[StreamRecord] = []
        self.stream_time: int | None = None
        self.routes: Counter[Route] = Counter()
        """How many records went which way so far."""

    def take(self, batch: Iterable[StreamRecord]) -> list[Joined]:
        """Take a batch's records in the order of arrival; return what is emitted, the table being as it is now."""
        at_once = []
        for record in batch:
            route = self.route(record)
            self.routes[route] += 1
            if route == "at_once":
                at_once.append(record)
            elif route == "waits":
                self.buffer.append(record)
                self.stream_time = max(
                    record.time, record.time if self.stream_time is None else self.stream_time
                )
        due = [record for record in self.buffer if self._is_due(record)]
        self.buffer = [record for record in self.buffer if not self._is_due(record)]
        return self._join([*at_once, *sorted(due, key=_leaving_order)])

    def flush(self) -> list[Joined]:
        """Release whatever still waits, at the end of a history; stream time stays."""
        waiting, self.buffer = sorted(self.buffer, key=_leaving_order), []
        return self._join(waiting)

    def route(self, record: StreamRecord) -> Route:
        """Say what becomes of a record, by the stream time before it."""
        if record.value is None:
            return "ignored"
        if record.key is None:
            return "at_once" if self.how == "left" else "ignored"
        if self.grace is None:
            return "at_once"
        if self.stream_time is not None and record.time < self.stream_time - self.grace:
            return "at_once" if self.late == "join" else "late"
        return "waits"

    def _is_due(self, record: StreamRecord) -> bool:
        assert self.grace is not None
        return self.stream_time is not None and record.time <= self.stream_time - self.grace

    def _join(self, records: Iterable[StreamRecord]) -> list[Joined]:
        joined = [
            Joined(record, None if record.key is None else self.table.look_up(record.key, record.time))
            for record in records
        ]
        return [one for one in joined if self.how == "left" or one.right is not None]


def _leaving_order(record: StreamRecord) -> tuple[int, bytes]:
    """Sorts by time, then the key's bytes; a stable sort leaves equal ones in the order of arrival."""
    return record.time, str(record.key).encode()
