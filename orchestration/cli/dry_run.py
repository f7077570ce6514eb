"""Prints what `lakejoin run --dry-run` finds to do."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lakejoin.orchestration.cli.terminal import say

if TYPE_CHECKING:
    from lakejoin.orchestration.config import Pipeline
    from lakejoin.orchestration.planning.backlog import Backlog
    from lakejoin.storage.sources.files.source_files import FoundFile


def print_work(pipeline: "Pipeline", waiting: "Backlog", replace: str | None, *, flush: bool) -> None:
    """Print what a run would do, in its order; no file is opened, so a new one may turn out to be empty."""
    if waiting.unfinished is not None:
        say(f"would finish batch {waiting.unfinished.batch}, which is under way")
    for name in waiting.new_joins:
        say(f"would begin join {name} from the rows of its tables")
    if replace is not None:
        say(f"would take the files of {replace} that were exported again in the place of what they were")
    for name in pipeline.inputs:
        what = pipeline.inputs[name].source_format.unit
        if files := [found.file for found in waiting.files if found.table == name]:
            dumped = waiting.dumped.get(name)
            told = f"{name}: {_told(files, what)}" if dumped is None else f"a dump of {name}, which {dumped}"
            say(f"would read {told}")
    if waiting.young:
        say(left_to_settle(waiting.young))
    if flush:
        say("would release what waits for its grace period")
    say("nothing was changed")


def left_to_settle(young: int) -> str:
    """Say how many files a run leaves for later."""
    return f"{young:,} file{'s' * (young != 1)} left to settle, changed less than `settle` ago"


def _told(files: "Sequence[FoundFile]", what: str) -> str:
    days = sorted({file.date for file in files if file.date is not None})
    of_days = f" of {len(days)} dates from {days[0]} to {days[-1]}" if days else ""
    return f"{len(files)} {what}{of_days}, from {files[0].name} on"
