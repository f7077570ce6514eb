"""Runs `lakejoin reconcile`: says in what a table differs from a snapshot of its source, and makes it equal to that."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated

import typer

from lakejoin.orchestration.cli import options
from lakejoin.orchestration.cli.exit_codes import FAILED
from lakejoin.orchestration.cli.options import Config
from lakejoin.orchestration.cli.progress import follow


def reconcile(
    config: Config,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A table that declares `reconcile`.")],
    *,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="JSON",
            help="Sequence of the last change that is in the snapshot, such as '{\"lsn\": 26523}'.",
        ),
    ] = None,
    mend: Annotated[bool, typer.Option("--mend", help="Make the table equal to the snapshot.")] = False,
) -> None:
    """Compare a table with the last snapshot of its source, and say in what it differs.

    Rows that changed after the snapshot are left out, if `--at` says when it was taken. Without it the snapshot has to
    be as new as the last change that was read, or newer. With `--mend` a batch of its own makes the table equal to the
    snapshot, and the joins with it.
    """
    from lakejoin.orchestration.runs.reconcile import reconcile as work

    pipeline = options.load_pipeline(config)
    found: list[object] = []

    def working(progress: Callable[[str], None]) -> Iterator[object]:
        for done in work(
            pipeline, partial(options.open_session, pipeline), table, at=at, mend=mend, progress=progress
        ):
            found.append(done)
            yield done

    if not follow(working, None) and getattr(found[0], "count", False):
        raise typer.Exit(FAILED)
