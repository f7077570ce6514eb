"""Changes of the left side: orders are updated, given to other customers, deleted, and inserted again."""

import random
from collections.abc import Sequence
from datetime import date, timedelta

from bench.tpch.schemas import DANGLING, PRIORITIES, Row, comment, money
from bench.tpch.side import Group, Side, Step

_SEVERAL: Sequence[Sequence[Step]] = (
    ("move", "back"),  # leaves the row as it was
    ("update", "update"),
    ("update", "move"),
    ("update", "move", "update"),
    ("move", "delete", "create"),
)
"""What happens to the few keys that change more than once in a batch."""


class LeftChanges:
    """Draws batches of changes of the orders.

    Of the drawn keys 60 % are updated, 25 % get another foreign key, 8 % are deleted, 4 % were deleted and come
    again, 3 % are new. Of the new foreign keys 2 % are null and 1 % name no customer.
    """

    def __init__(self, orders: Side, customers: Side, rng: random.Random) -> None:
        self._orders, self._customers, self._rng = orders, customers, rng
        self._moved_from: dict[int, int | None] = {}

    def batch(self, size: int) -> list[Row]:
        """Draw a batch of `size` rows."""
        used: set[int] = set()
        groups: list[Group] = []
        rows = 0
        while rows < size:
            group = self._draw(used, room=size - rows)
            if group is not None:
                groups.append(group)
                rows += len(group[1])
        return self._orders.change(groups, self._apply)

    def _draw(self, used: set[int], room: int) -> Group | None:
        """A key and its steps; None where a draw asks for more rows than there is room for."""
        share = self._rng.random()
        if share < 0.85:
            steps: Sequence[Step] = ("update",) if share < 0.60 else ("move",)
            if self._rng.random() < 0.05 and room >= 3:
                steps = self._rng.choice(_SEVERAL)
            return self._orders.pick(used), steps
        if share < 0.93:
            return self._orders.pick(used), ("delete",)
        if share < 0.97:
            return self._again(used, room)
        return self._new(used), ("create",)

    def _again(self, used: set[int], room: int) -> Group | None:
        key = self._orders.revive(used)
        if key is not None:
            return key, ("create",)
        return (self._orders.pick(used), ("delete", "create")) if room >= 2 else None

    def _new(self, used: set[int]) -> int:
        self._orders.top += 1
        self._orders.add(self._orders.top)
        used.add(self._orders.top)
        return self._orders.top

    def _apply(self, key: int, step: Step, old: Row) -> Row:
        rng = self._rng
        if step == "create":
            return (
                key, self._foreign_key(), "O", money(rng), date(1998, 8, 3) + timedelta(rng.randrange(365)),
                rng.choice(PRIORITIES), comment(rng),
            )  # fmt: skip
        if step == "update":
            return (*old[:2], rng.choice("FOP"), money(rng), old[4], rng.choice(PRIORITIES), comment(rng))
        if step == "back":
            return (*old[:1], self._moved_from[key], *old[2:])
        self._moved_from[key] = old[1]
        return (*old[:1], self._foreign_key(), *old[2:])

    def _foreign_key(self) -> int | None:
        share = self._rng.random()
        if share < 0.02:
            return None
        if share < 0.03:
            return self._customers.top + 1 + self._rng.randrange(DANGLING)
        return self._customers.pick(set())
