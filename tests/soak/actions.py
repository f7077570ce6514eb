"""What a history is made of: files that come or change, runs and what disturbs them, other work on a lake."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from faults.crashing import When
from lakejoin.orchestration.planning.pending_input import BatchBy
from properties.scenarios import Change, Side
from properties.trial import Line

Ending = Literal["whole", "open", "torn"]
"""How the last line of a file ends: with its line end, without it, or in the middle."""
FileName = tuple[Side, str]
"""A source file: its side, and its name below the source's directory."""
Point = tuple[str, When]
"""A place to disturb a run at: the first commit to a table."""


@dataclass(frozen=True)
class Write:
    """A file has these lines from now on: it is new, has grown, or is another one."""

    kind: str
    """What this is an instance of, to be counted."""
    side: Side
    day: int
    name: str
    lines: Sequence[Line]
    ending: Ending = "whole"
    young: bool = False
    """Whether it changed just now, so that a run that lets files settle leaves it out."""

    def __str__(self) -> str:
        """Say which file, and how it is."""
        age = ", young" if self.young else ""
        return f"{self.kind}: {self.side} {self.name}, {len(self.lines)} lines, {self.ending}{age}"


@dataclass(frozen=True)
class Crash:
    """The process ends before, in or after a commit."""

    table: str
    when: When


@dataclass(frozen=True)
class Overtaken:
    """At a commit another run comes in, without the lock, and works off whatever is pending."""

    table: str
    when: When


Disturbance = Crash | Overtaken


@dataclass(frozen=True)
class Run:
    """`lakejoin run`. Undisturbed, it leaves nothing pending."""

    batch_by: BatchBy = "date"
    batch_rows: int | None = None
    settles: bool = False
    """Whether files that changed just now are left for later."""
    folds: bool = False
    """Whether bases are folded after every batch."""
    disturbance: Disturbance | None = None


@dataclass(frozen=True)
class Refused:
    """A run that has to stop, for a file is no longer what was read."""

    day: int


@dataclass(frozen=True)
class Replace:
    """`lakejoin run --replace` of a day whose files are no longer what was read."""

    day: int
    crash: Crash | None = None


@dataclass(frozen=True)
class Maintain:
    """`lakejoin maintain --all`, or some kinds of its steps."""

    works: tuple[str, ...]


@dataclass(frozen=True)
class Migrate:
    """`lakejoin migrate`, after a column was declared that the source has had for some time; perhaps cut off."""

    side: Side
    crash: Crash | None = None


@dataclass(frozen=True)
class Retry:
    """The limit of a line is raised, and what is in quarantine is read once more."""


Action = Write | Run | Refused | Replace | Maintain | Migrate | Retry


@dataclass(frozen=True)
class History:
    """All that happens to one lake."""

    seed: int
    sequences: tuple[Sequence[Change], ...]
    joins: dict[str, dict[str, Any]]
    keeps_old_versions: bool
    actions: tuple[Action, ...]
