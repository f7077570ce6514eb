"""Says how something was found: as it should be, doubtful, or wrong."""

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "warning", "wrong"]


@dataclass(frozen=True)
class Finding:
    """One line of what was looked at."""

    about: str
    verdict: Verdict
    text: str
    """What was found; where it is not as it should be, what to do."""
