"""One side of the workload: which keys it has, their current rows, and how changes become rows of a file."""

import array
import random
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Literal

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from bench.tpch.schemas import HEAD, START, Row, body

Step = Literal["update", "move", "back", "delete", "create"]
"""What happens to a key: `move` changes its foreign key, and `back` undoes that."""
Group = tuple[int, Sequence[Step]]
"""A key and its steps of one batch, in their order."""
Apply = Callable[[int, Step, Row], Row]
"""Turns key, step and current row into the next row; the row is empty where the key has none."""

_REVIVALS = 8
_KEYS_AT_ONCE = 1_000_000


class Side:
    """The current rows of one side: the base file, overlaid by every row that was changed since.

    Every draw is taken from `rng` in a fixed order: the same seed makes the same rows.
    """

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, schema: pa.Schema, base: Path, rng: random.Random
    ) -> None:
        self.schema = schema
        self.columns = body(schema)
        self.key = self.columns[0]
        self.keys = array.array("q")
        for part in pq.ParquetFile(base).iter_batches(_KEYS_AT_ONCE, columns=[self.key]):
            self.keys.frombytes(part.column(0).to_numpy().tobytes())
        self.top = max(self.keys)
        self._connection, self._base, self._rng = connection, base, rng
        self._offset = len(self.keys)
        self._overlay: dict[int, Row | None] = {}
        """Row without the head of every key that was touched; None when deleted."""
        self._dead: list[int] = []
        """Deleted keys that may be inserted again."""

    def knows(self, key: int) -> bool:
        """Whether a key was touched since the base."""
        return key in self._overlay

    def add(self, key: int) -> None:
        """Make a key known that has no row yet."""
        self.keys.append(key)
        self._overlay[key] = None

    def pick(self, used: set[int], avoid: Collection[int] = ()) -> int:
        """Draw a key that has a row and is not used yet, and mark it as used."""
        while True:
            key = self.keys[self._rng.randrange(len(self.keys))]
            if key not in used and key not in avoid and self._has_row(key):
                used.add(key)
                return key

    def revive(self, used: set[int]) -> int | None:
        """Draw a key that was deleted in an earlier batch; None where a few draws find none."""
        for _ in range(min(_REVIVALS, len(self._dead))):
            place = self._rng.randrange(len(self._dead))
            key = self._dead[place]
            if key not in used and not self._has_row(key):
                self._dead[place] = self._dead[-1]
                self._dead.pop()
                used.add(key)
                return key
        return None

    def change(self, groups: Sequence[Group], apply: Apply) -> list[Row]:
        """Carry out the steps of a batch, mixed at random but each key's in their order; return its rows."""
        self._load(key for key, _ in groups)
        slots: list[tuple[float, int, int, Step]] = []
        for number, (key, steps) in enumerate(groups):
            times = sorted(self._rng.random() for _ in steps)
            slots += [(time, number, key, step) for time, step in zip(times, steps, strict=True)]
        slots.sort(key=lambda slot: slot[:2])
        return [self._step(key, step, apply) for _, _, key, step in slots]

    def _step(self, key: int, step: Step, apply: Apply) -> Row:
        old = self._overlay.get(key)
        if step == "delete":
            op, row = "d", None
            self._dead.append(key)
        else:
            op, row = "c" if old is None else "u", apply(key, step, old or ())
        self._overlay[key] = row
        head = (op, self._offset, START + timedelta(milliseconds=self._offset))
        self._offset += 1
        return (*head, *(row or (key, *[None] * (len(self.schema) - len(HEAD) - 1))))

    def _has_row(self, key: int) -> bool:
        return self._overlay.get(key, ()) is not None

    def _load(self, keys: Iterable[int]) -> None:
        """Bring the base rows of these keys into the overlay."""
        wanted = sorted(key for key in keys if key not in self._overlay)
        self._connection.register("wanted", pa.table({"wanted_key": pa.array(wanted, pa.int64())}))
        found = self._connection.execute(
            f"select {', '.join(self.columns)} from read_parquet(?) "
            f"semi join wanted on {self.key} = wanted_key",
            [str(self._base)],
        )
        self._overlay |= {row[0]: row for row in found.fetchall()}
        self._connection.unregister("wanted")
