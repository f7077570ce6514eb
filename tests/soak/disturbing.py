"""What disturbs a run: it ends at a commit, or others come in."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

from faults.crashing import Commits, commits
from faults.racing import unlocked
from soak.actions import Crash, Disturbance, Overtaken


def _nothing() -> None:
    """Done at a point that nothing happens at."""


@contextmanager
def disturbed(disturbance: Disturbance | None, others: Callable[[], None] = _nothing) -> Iterator[Commits]:
    """Let a run come to its point; yields what knows whether it did. `others`: another run's work, without the lock."""
    match disturbance:
        case Crash(table, when):
            counting = commits(table, when)
        case Overtaken(table, when):
            counting = commits(table, when, others)
        case None:
            counting = commits()
    with unlocked() if isinstance(disturbance, Overtaken) else nullcontext(), counting as counted:
        yield counted
