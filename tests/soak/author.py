"""Writes the episodes of a history: what happens to a lake from one state without anything pending to the next."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from faults.crashing import WHEN
from lakejoin.orchestration.maintenance.steps import WORKS
from lakejoin.storage.lake.layout import (
    MAINTENANCE,
    PLAN,
    PUBLISHED,
    QUARANTINE,
    changes_of,
    joined_of,
    response_log_of,
    rows_of,
    subscription_log_of,
    subscription_store_of,
)
from properties.relations import TABLES, sides_of
from properties.scenarios import Change, Side
from soak.actions import (
    Action,
    Crash,
    Disturbance,
    Maintain,
    Migrate,
    Overtaken,
    Refused,
    Replace,
    Retry,
    Run,
    Write,
)
from soak.source_files import SourceFiles

_SIDES: tuple[Side, ...] = tuple(TABLES)


class Author:
    """Writes episodes; every one ends with nothing pending."""

    def __init__(
        self, random: Random, sequences: Sequence[Sequence[Change]], joins: Mapping[str, dict[str, Any]]
    ) -> None:
        self._random, self._joins = random, joins
        self._sides = [side for name, join in joins.items() for side in sides_of(name, join)]
        self._added = random.choice(_SIDES)
        self._files = SourceFiles(random, sequences, self._added)

    def day(self, day: int, way: str, in_the_way: str) -> Iterator[Action]:
        """The files of a day come in a way, and are worked off with something in the way."""
        files = [self._files.of_day(side, day) for side in _SIDES]
        self._random.shuffle(files)
        special, other = files
        if way == "whole" or len(special.lines) < 2:
            yield from (special, other)
        else:
            yield other
            yield from self._in_parts(special, way)
        if way == "torn, read":
            return  # the corrected day was worked off
        yield from self.worked_off(in_the_way)

    def _in_parts(self, file: Write, way: str) -> Iterator[Action]:
        """A file of which a part is there when a run begins."""
        lines = self._random.randint(1, len(file.lines) - 1)
        part = replace(file, kind=way, lines=file.lines[:lines])
        match way:
            case "late file":
                yield from (self._perhaps_cut_off(), replace(file, kind=way))
            case "growing":
                yield from (part, self._perhaps_cut_off(), file)
            case "open end":
                yield from (replace(part, ending="open"), self._perhaps_cut_off(), file)
            case "torn, settled":
                yield from (replace(part, ending="torn", young=True), self._run(settles=True), file)
            case "torn, read":
                yield from (replace(part, ending="torn"), self._run(), file)
                yield from (Refused(file.day), Replace(file.day, self._perhaps(self._crash)))

    def worked_off(self, in_the_way: str) -> Iterator[Action]:
        """Runs to the end of what is pending, with something in the way."""
        match in_the_way:
            case "crash":
                yield self._run(self._crash())
            case "two crashes":
                yield from (self._run(Crash(*self._early())), self._run(Crash(*self._late())))
            case "crash, fold":
                yield from (self._run(self._crash()), Maintain(("fold",)))
            case "fold cut off":
                yield replace(self._run(self._fold_crash()), folds=True)
            case "overtaken":
                yield self._run(Overtaken(*self._point()))
        yield self._run()

    def between(self, what: str) -> Sequence[Action]:
        """Something else happens to the lake; what it leaves pending is worked off."""
        file = self._files.any()
        episodes: dict[str, Callable[[], Sequence[Action]]] = {
            "again": lambda: (self._files.again(file), self._run()),
            "touched": lambda: (replace(file, kind="touched"), self._run()),
            "migrate": lambda: (Migrate(self._added, self._perhaps(self._migration_crash)),),
            "retry": lambda: (Retry(),),
            "maintain": lambda: (Maintain(WORKS),),
        }
        return episodes[what]()

    def _run(self, disturbance: Disturbance | None = None, *, settles: bool = False) -> Run:
        return Run(
            self._random.choice(["date", "date", "all"]),
            self._random.choice([None, None, None, 40]),
            settles,
            self._random.random() < 0.15,
            disturbance,
        )

    def _perhaps_cut_off(self) -> Run:
        return self._run(self._perhaps(self._crash))

    def _perhaps(self, crash: Callable[[], Crash]) -> Crash | None:
        return crash() if self._random.random() < 0.4 else None

    def _crash(self) -> Crash:
        return Crash(*self._point())

    def _point(self) -> Any:
        """A table that a batch commits to, and when to end."""
        return self._random.choice([self._early, self._late])()

    def _early(self) -> Any:
        """A table that a batch commits to before any joined one."""
        logs = [log(side) for side in self._sides for log in (subscription_log_of, response_log_of)]
        tables = [PLAN, QUARANTINE, *[*map(changes_of, TABLES.values()), *logs] * 2]
        return self._random.choice(tables), self._random.choice(WHEN)

    def _late(self) -> Any:
        """A table that a batch commits to in its end."""
        tables = [*map(joined_of, self._joins), PUBLISHED]
        return self._random.choice(tables), self._random.choice(WHEN)

    def _fold_crash(self) -> Crash:
        """A crash at a table that a fold commits to."""
        bases = [*map(rows_of, TABLES.values()), *map(subscription_store_of, self._sides)]
        return Crash(self._random.choice([MAINTENANCE, *bases]), self._random.choice(WHEN))

    def _migration_crash(self) -> Crash:
        """A crash at a table that gets a column, or at the plan of the batch that records it."""
        own = changes_of(TABLES[self._added])
        return Crash(
            self._random.choice([own, *map(joined_of, self._joins), PLAN]), self._random.choice(WHEN)
        )
