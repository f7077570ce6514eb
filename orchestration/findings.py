"""What maintenance finds: figures that decide whether a step is due, and say so."""

from dataclasses import dataclass
from typing import Protocol


class Finding(Protocol):
    """What was found that a step would change."""

    @property
    def due(self) -> bool:
        """Whether the step is worth the work."""

    @property
    def any(self) -> bool:
        """Whether the step would change anything at all."""

    @property
    def why(self) -> str:
        """The figures that decide, as text."""


@dataclass(frozen=True)
class Left:
    """Files in the scratch folder."""

    files: int
    size: int

    @property
    def due(self) -> bool:
        """Nobody can use them."""
        return self.any

    @property
    def any(self) -> bool:
        """Whether there are any."""
        return self.files > 0

    @property
    def why(self) -> str:
        """The figures that decide, as text."""
        return f"{self.files:,} files that a batch left when it was cut off"


@dataclass(frozen=True)
class Doubt:
    """A pinned version cannot be read: what its files are, and so what may be removed, is not known."""

    why: str
    due: bool = True
    """It is tried, and says the same once more, for a lake should not grow in silence."""
    any: bool = True
