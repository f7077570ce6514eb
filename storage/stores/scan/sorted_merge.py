"""Merges files and row groups in the store's order, and opens each only when its rows can be the next ones.

Rows are handed on in blocks that grow, so that five rows cost little and millions no more than they must. The rows of a
block are sorted together, whichever files they are from; of several rows at one place the last one counts.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakejoin.storage.stores.scan.order import Between, Column, Place, ahead, nearest
from lakejoin.storage.stores.scan.row_groups import ROW, FilePart, GroupPart, tombstones
from lakejoin.storage.stores.scan.sorted_columns import backwards, firsts, sort_keys, sorted_rows, within
from lakejoin.storage.stores.scan.table_columns import Shape, dotted

RUN = "_lj_run"
"""Number of the run that a row is from."""
FIRST_ROWS, MOST_ROWS = 64, 65_536
"""Rows of each run that are looked at first, and at most at a time."""
_GROWTH = 4


@dataclass
class _Run:
    """Rows of a row group that was read, handed out piece by piece."""

    part: GroupPart
    places: pa.Table
    names: list[str]
    start: int = 0
    """Rows handed out."""
    stop: int = 0
    """Rows looked at."""

    @property
    def more(self) -> bool:
        return self.stop < len(self.places)

    @property
    def done(self) -> bool:
        return self.start == len(self.places)

    @property
    def end(self) -> Place:
        """Where the last row stands that was looked at."""
        return self.place(self.stop - 1)

    def place(self, row: int) -> Place:
        return tuple(self.places[name][row].as_py() for name in self.names)

    def extend(self, count: int) -> None:
        self.stop = min(self.places.num_rows, self.stop + count)

    def take(self, until: Place | None, *, reverse: bool) -> pa.Table:
        """Hand out the rows looked at that are ahead of a place."""
        stop = self.stop
        if until is not None:
            looked_at = range(self.start, self.stop)
            beyond = bisect_left(
                looked_at, 1, key=lambda row: not ahead(self.place(row), until, reverse=reverse)
            )
            stop = self.start + beyond
        rows, self.start = self.places.slice(self.start, stop - self.start), stop
        return rows


class Merge:
    """One reading of parts, in one direction."""

    def __init__(
        self,
        parts: Iterable[FilePart],
        shape: Shape,
        late: Mapping[Column, Between],
        *,
        reverse: bool,
        tombs: bool,
    ) -> None:
        """`late`: limits of the rows that count; `tombs`: whether tombstones are wanted."""
        self._waiting: list[FilePart | GroupPart] = list(parts)
        self._late = late
        self._runs: dict[int, _Run] = {}
        self._shape, self._reverse, self._tombs = shape, reverse, tombs
        self._count, self._size = 0, FIRST_ROWS

    def blocks(self) -> Iterator[pa.Table]:
        """Yield the rows' columns, block by block; each block is not empty."""
        while self._waiting or self._runs:
            until = nearest(
                [
                    *(part.edge for part in self._waiting),
                    *(run.end for run in self._runs.values() if run.more),
                ],
                reverse=self._reverse,
            )
            rows = self._settled(until)
            if rows is not None and rows.num_rows:
                yield self._values(rows)
            self._runs = {number: run for number, run in self._runs.items() if not run.done}
            if until is not None:
                self._advance(until)

    def _advance(self, until: Place) -> None:
        """Open the parts and look further into the runs that may have the next row."""
        for run in self._runs.values():
            if run.more and not ahead(until, run.end, reverse=self._reverse):
                run.extend(self._size)
        waiting, self._waiting = self._waiting, []
        for part in waiting:
            if ahead(until, part.edge, reverse=self._reverse):
                self._waiting.append(part)
            elif isinstance(part, FilePart):
                self._waiting += part.open()
            else:
                self._begin(part)

    def _begin(self, part: GroupPart) -> None:
        places = part.places()
        if places.num_rows:
            run = _Run(part, places, [*map(dotted, self._shape.order)])
            run.extend(FIRST_ROWS)
            self._runs[self._count] = run
            self._count += 1

    def _settled(self, until: Place | None) -> pa.Table | None:
        """Take all rows ahead of a place from the runs; return those that count, in order."""
        pieces = []
        for number, run in self._runs.items():
            rows = run.take(until, reverse=self._reverse)
            if rows.num_rows:
                pieces.append(
                    rows.append_column(RUN, pa.array(np.full(rows.num_rows, number, dtype=np.int64)))
                )
        if not pieces:
            return None
        self._size = min(MOST_ROWS, self._size * _GROWTH)
        if self._reverse:
            pieces = [backwards(piece) for piece in pieces]
        rows = sorted_rows(pa.concat_tables(pieces).combine_chunks(), sort_keys(self._shape))
        if not self._shape.every:
            rows = firsts(rows, [*map(dotted, self._shape.order)])
        if self._shape.gone and not self._tombs:
            rows = rows.filter(pc.invert(tombstones(rows, self._shape)))
        for column, limit in self._late.items():
            rows = rows.filter(within(rows[dotted(column)], limit))
        return backwards(rows) if self._reverse else rows

    def _values(self, rows: pa.Table) -> pa.Table:
        """Return what is to be read of rows, in their order, from the row groups they are in."""
        found, at = [], []
        for number in pc.unique(rows[RUN]).to_pylist():
            of_run = pc.equal(rows[RUN], number)
            found.append(self._runs[number].part.values.take(rows[ROW].filter(of_run)))
            at.append(pc.indices_nonzero(of_run))
        places = pa.concat_arrays(at)
        values = pa.concat_tables(found)
        return values if len(found) == 1 else values.take(pc.sort_indices(places))
