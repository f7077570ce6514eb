"""What takes part in the race: someone who brings the joined table up to date, each in their own way."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame

PREFIX = "right_"
"""Put before the names of the right columns in every contender's joined table."""


@dataclass(frozen=True)
class Work:
    """What a contender tells of a batch beside what can be measured from outside."""

    stages: Mapping[str, float]
    """Seconds of its stages; they may run beside each other."""
    counts: Mapping[str, Mapping[str, int]]
    """What it counted, by table and join."""


NOTHING_TOLD = Work({}, {})
StageBytes = Mapping[str, Mapping[str, int]]
"""What each stage read of files and kept frames, wrote into files, and shuffled, as Spark counts it."""


class Contender(ABC):
    """Keeps the joined table in `folder`; batch 0 is the first load."""

    name: str
    folder: Path
    pid: int | None = None
    """The process that works; None for this one and the JVM below it."""
    loads = True
    """Whether the first load is something it does."""
    recomputes = False
    """Whether it makes the joined table anew each time, and so may sit out a batch."""

    def start(self) -> None:  # noqa: B027 - not everyone needs it
        """Take over what everyone's first load left; once, before the first batch behind it, outside the clock."""

    def keep(self, target: Path) -> None:  # noqa: B027 - only ours is worth keeping
        """Keep what the first load made, so that another race may begin with it."""

    def prepare(self, batch: int) -> None:  # noqa: B027 - not everyone needs it
        """Put in place what a batch is to find; the clock does not run."""

    @abstractmethod
    def run(self, batch: int) -> Work:
        """Bring the joined table up to date; the clock runs."""

    def stage_bytes(self, first_job: int) -> StageBytes:  # noqa: ARG002 - only ours has stages
        """What the stages of a batch read and wrote in Spark's jobs from this number on, where they are told apart."""
        return {}

    @abstractmethod
    def joined(self) -> DataFrame:
        """The joined table as it is now."""

    def maintain(self, *, everything: bool) -> None:  # noqa: B027 - not everyone needs it
        """Do what was put off to the time after a batch, or all that can be done; a clock of its own runs."""

    @abstractmethod
    def stored(self) -> Mapping[str, int]:
        """Bytes of the files that the current versions of its tables consist of, by table."""

    def close(self) -> None:  # noqa: B027 - not everyone needs it
        """End what was started."""
