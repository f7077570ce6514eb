"""Random histories of a lake, each repeatable from its seed.

A history is put together of episodes: a day's files come, whole or in parts, and are worked off with something in the
way; in between a day comes again, is corrected, a column is added, maintenance works. Every episode ends with a run
that nothing disturbs.
"""

from collections.abc import Mapping
from random import Random
from typing import Any

from properties.relations import GROUPS, JOINS, STARS, VARIANTS
from properties.scenarios import DAYS, random_sequence
from soak.actions import Action, History
from soak.author import Author

_SIDE_BY_SIDE = 30
"""Sequences of a history: a batch costs the same for one as for many."""
_PIPELINES: tuple[Mapping[str, dict[str, Any]], ...] = (
    {name: JOINS[name] for name in ("enriched", "enriched_twice")},
    {name: JOINS[name] for name in ("enriched", "with_parent")},
    {"matched": JOINS["matched"], "matched_twice": JOINS["enriched_twice"] | {"left": "matched"}},
    {name: VARIANTS[name] | {"history": True} for name in ("paired", "paired_twice")},
    {"starred": STARS["starred"] | {"history": True}},
    {
        "enriched": JOINS["enriched"] | {"materialized": {"deletion_vectors": False}},
        "counted": GROUPS["counted"],
        "listed": GROUPS["listed"] | {"history": True, "materialized": {"partition_by": ["case_id"]}},
    },
)
"""A batch takes as long as it has joins. Inner and left ones, joins over joins, of a table with itself, a star, groups;
some have histories, or tables that are kept otherwise."""
_WAYS = ("whole", "whole", "late file", "growing", "open end", "torn, settled", "torn, read")
_IN_THE_WAY = ("nothing", "crash", "crash", "two crashes", "crash, fold", "fold cut off", "overtaken")
_BETWEEN = ("again", "again", "touched", "migrate", "retry", "maintain")
_MOST_BETWEEN = 3
_MOST_DAYS = 3
"""Of those that the sequences have: the others never come."""


def history(seed: int) -> History:
    """Return the history of a seed."""
    random = Random(seed)
    sequences = tuple(random_sequence(random) for _ in range(_SIDE_BY_SIDE))
    joins = random.choice(_PIPELINES)
    author = Author(random, sequences, joins)
    days = random.sample(range(DAYS), random.randint(2, _MOST_DAYS))
    if random.random() < 0.5:
        days.sort()
    between = random.sample(_BETWEEN, random.randint(1, _MOST_BETWEEN))
    places = sorted((random.randint(1, len(days)), what) for what in between)
    actions: list[Action] = []
    for number, day in enumerate(days, start=1):
        actions += author.day(day, random.choice(_WAYS), random.choice(_IN_THE_WAY))
        for place, what in places:
            if place == number:
                actions += author.between(what)
    return History(seed, sequences, dict(joins), random.random() < 0.5, tuple(actions))
