"""What disturbs a run: it ends at a commit, an answer is lost, others come in; processes that are killed or refused."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress

from faults.crashing import Commits, commits, steps
from faults.processes import commits_of, lakejoin, started
from faults.racing import lost, unlocked
from orchestration.config import Pipeline
from soak.actions import Crash, Disturbance, Locked, Lost, Overtaken
from storage.lake import PLAN


def _nothing() -> None:
    """Done at a point that nothing happens at."""


@contextmanager
def disturbed(
    disturbance: Disturbance | None,
    others: Callable[[], None] = _nothing,
    knock: Callable[[], None] = _nothing,
) -> Iterator[Commits]:
    """Let a run, or maintenance, come to its point; yields what knows whether it did.

    `others`: work of another run without the lock; `knock`: another run that wants the lake.
    """
    match disturbance:
        case Crash(table, when):
            counting = steps(table, when)
        case Lost(table):
            counting = commits(table, "after", lambda: _lose(table))
        case Overtaken(table, when):
            counting = commits(table, when, others)
        case Locked(table, when):
            counting = commits(table, when, knock)
        case None:
            counting = commits()
    with unlocked() if isinstance(disturbance, Overtaken) else nullcontext(), counting as counted:
        yield counted


def _lose(table: str) -> None:
    raise lost(table)


def run_apart(pipeline: Pipeline, killed_after: float | None) -> str:
    """Work a lake off in a process that is killed so many seconds after its first plan, or else in two at once.

    Returns what happened.
    """
    folder, before = pipeline.path.parent, commits_of(pipeline, PLAN)
    first = lakejoin(folder, "run")
    if killed_after is None:
        ends = [process.end() for process in (first, lakejoin(folder, "run"))]
        assert 0 in {code for code, _ in ends} <= {0, 1}, ends
        return "two processes"
    if started(pipeline, first, before):
        time.sleep(killed_after)
    with suppress(ProcessLookupError):  # it was done before
        first.kill()
    return "killed process"
