"""Prints the progress of batches while a command works them off."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from lakejoin.orchestration.cli.summary import batch_line, print_summary
from lakejoin.orchestration.cli.terminal import progress_bar, say

if TYPE_CHECKING:
    from lakejoin.storage.lake.plan import Published


def follow(
    work: Callable[[Callable[[str], None]], Iterable[object]], expected: int | None
) -> "list[Published]":
    """Show a progress bar, a line for each batch when it is finished, and in the end what they did together.

    `work`: takes what describes the step under way; yields finished batches, and whatever else is worth a line.
    `expected`: how many batches there will be, None where that is not known. Returns the batches.
    """
    from lakejoin.storage.lake.plan import Published

    published: list[Published] = []
    try:
        with progress_bar("starting Spark", expected) as bar:
            for done in work(bar.describe):
                if not isinstance(done, Published):
                    say(str(done))
                    continue
                published.append(done)
                say(batch_line(done))
                bar.advance()
    finally:
        print_summary(published)
    return published
