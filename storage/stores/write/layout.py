"""Defines how a store of our own lies in a Delta table: its columns, and what the table's properties state.

A put appends its rows and changes nothing: of several rows at one place the last put counts, and in it the last row. A
delete is a row, too. Compaction drops what was superseded.
"""

import json
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any, Literal

from lakejoin.storage.stores.errors import StoreUnreadable
from lakejoin.storage.stores.scan.delta_table import TableFiles
from lakejoin.storage.stores.scan.table_columns import Shape, paths

Kind = Literal["key-value", "window", "session", "versioned"]

PROPERTY = "lakejoin.store"
"""Table property that holds the layout as JSON."""
DELETED = "_lj_deleted"
"""True in the row of a delete."""
PUT = "_lj_put"
"""Number of the commit that put the row, from 1."""
PLACE = "_lj_place"
"""What orders the rows of one put."""
OBSERVED = "_lj_observed"
"""Time of the row as whole microseconds: Delta's log shortens timestamps to milliseconds. Null in key-value stores."""

TIMES: dict[Kind, tuple[str, ...]] = {
    "key-value": (),
    "window": ("start",),
    "session": ("end", "start"),
    "versioned": ("valid_from",),
}
"""Columns of time of each kind, in the order that rows of a key have. The first one is what retention looks at."""
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Layout:
    """What a store's table was made for."""

    kind: Kind
    key: tuple[str, ...]
    value: tuple[str, ...]
    retention: timedelta | None = None
    """How long rows stay behind the newest time observed; None for ever."""
    window: timedelta | None = None
    """Length of a window."""
    duplicates: bool = False
    """Whether a window store keeps every put."""

    @property
    def times(self) -> tuple[str, ...]:
        """Columns of time."""
        return TIMES[self.kind]

    @property
    def given(self) -> tuple[str, ...]:
        """Columns that a put gives."""
        return (*self.key, *self.times, *self.value)

    @property
    def shape(self) -> Shape:
        """The same as a reader takes it."""
        return Shape(
            key=paths(self.key),
            times=paths(self.times),
            rank=((PUT,), (PLACE,)),
            gone={(DELETED,): frozenset({True})},
            columns=(*self.given, DELETED) if self.kind == "versioned" else self.given,
            every=self.duplicates,
        )

    def to_json(self) -> str:
        """As the table property holds it."""
        members = asdict(self) | {
            n: _micros(v) for n, v in (("retention", self.retention), ("window", self.window))
        }
        return json.dumps(members, sort_keys=True)


def read_layout(table: TableFiles, kind: Kind) -> Layout:
    """Return what a store's table states. Raises `StoreUnreadable` for any other table."""
    stated = table.configuration.get(PROPERTY)
    if stated is None:
        raise StoreUnreadable(
            f"{table.path}: is no store: its properties have no {PROPERTY}; expected a table that `create` of a "
            f"{kind} store made"
        )
    found: dict[str, Any] = json.loads(stated)
    if found["kind"] != kind:
        raise StoreUnreadable(
            f"{table.path}: is a {found['kind']} store; open it as one, not as a {kind} store"
        )
    times = {n: None if found[n] is None else found[n] * _MICROSECOND for n in ("retention", "window")}
    lists = {n: tuple(found[n]) for n in ("key", "value")}
    return Layout(**{**found, **times, **lists})


def _micros(duration: timedelta | None) -> int | None:
    return None if duration is None else duration // _MICROSECOND
