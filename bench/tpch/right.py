"""Changes of the right side: customers are updated, deleted and inserted, some when orders point at them already."""

import random

from bench.tpch.schemas import CELEBRITY, DANGLING, SEGMENTS, Row, comment, money
from bench.tpch.side import Group, Side, Step


class RightChanges:
    """Draws batches of changes of the customers: of the keys 85 % are updated, 10 % deleted, 5 % inserted.

    `spared`: one customer, `CELEBRITY`, is never drawn; it changes only where that is asked for.
    """

    def __init__(self, customers: Side, rng: random.Random, *, spared: bool) -> None:
        self._customers, self._rng = customers, rng
        self._avoid = (CELEBRITY,) if spared else ()

    def batch(self, size: int, *, celebrity: bool) -> list[Row]:
        """Draw a batch of `size` rows, each of another key; with `celebrity` that customer's is one of them."""
        used: set[int] = set()
        groups: list[Group] = []
        while len(groups) < size:
            group = self._draw(used)
            if group is not None:
                groups.append(group)
        if celebrity:
            groups[self._rng.randrange(size)] = (CELEBRITY, ("update",))
        return self._customers.change(groups, self._apply)

    def _draw(self, used: set[int]) -> Group | None:
        share = self._rng.random()
        if share < 0.95:
            return self._customers.pick(used, self._avoid), ("update",) if share < 0.85 else ("delete",)
        key = self._customers.revive(used) if self._rng.random() < 0.5 else None
        if key is None:
            key = self._new(used)
        return (key, ("create",)) if key is not None else None

    def _new(self, used: set[int]) -> int | None:
        """A customer that orders may already point at; None where the draw is one that was touched before."""
        key = self._customers.top + 1 + self._rng.randrange(DANGLING)
        if key in used or self._customers.knows(key):
            return None
        used.add(key)
        self._customers.add(key)
        return key

    def _apply(self, key: int, step: Step, old: Row) -> Row:
        rng = self._rng
        if step == "update":
            return (*old[:2], money(rng), old[3], comment(rng))
        return (key, f"Customer#{key:09d}", money(rng), rng.choice(SEGMENTS), comment(rng))
