"""Runs `lakejoin quarantine`: lists the records in quarantine, adds to them, or reads them once more."""

from functools import partial
from typing import Annotated

import typer

from lakejoin.orchestration.cli import options
from lakejoin.orchestration.cli.options import Config
from lakejoin.orchestration.cli.progress import follow
from lakejoin.orchestration.cli.terminal import console, print_rows, say

Names = Annotated[
    list[str] | None, typer.Argument(metavar="[TABLE]...", help="Tables and streams; by default all.")
]

quarantine = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@quarantine.callback()
def describe() -> None:
    """List the records that could not be accepted, put others beside them, or read them once more."""


@quarantine.command("list")
def listed(
    config: Config,
    names: Names = None,
    *,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="At most N records.")] = 20,
) -> None:
    """Show the records that are in quarantine, where they stand and what is wrong with them.

    Those that were read with success since are left out, and those of files that were replaced.
    """
    from lakejoin.orchestration.runs.retry_quarantine import in_quarantine, known
    from lakejoin.orchestration.show.text_formats import texts
    from lakejoin.orchestration.spark_errors import explained

    pipeline = options.load_pipeline(config)
    chosen = known(pipeline, names or ())
    spark = options.open_session(pipeline)
    with explained(pipeline, "reading the quarantine"):
        rows = in_quarantine(pipeline, spark, chosen)
        found = [list(row) for row in texts(rows.limit(limit + 1), ()).toLocalIterator()]
    if not found:
        say("Nothing is in quarantine.")
        return
    print_rows(console(), rows.columns, found[:limit])
    if len(found) > limit:
        say(f"The first {limit} records; --limit shows more.")


@quarantine.command()
def retry(config: Config, names: Names = None) -> None:
    """Read the records in quarantine once more, in a batch of their own.

    For records that can be accepted now: a limit was raised, or a value that was left out is known. Each is held
    against the rows as a late one, at its own position. For a file that was corrected: `lakejoin run FILE --replace`.
    """
    from lakejoin.orchestration.runs.retry_quarantine import known
    from lakejoin.orchestration.runs.retry_quarantine import retry as again

    pipeline = options.load_pipeline(config)
    chosen = known(pipeline, names or ())
    session = partial(options.open_session, pipeline)
    if not follow(lambda progress: again(pipeline, session, chosen, progress=progress), 1):
        say("Nothing is in quarantine that could be read once more.")


@quarantine.command()
def add(
    config: Config,
    name: Annotated[str, typer.Argument(metavar="TABLE", help="The table or stream of the records.")],
    *,
    record: Annotated[
        list[str], typer.Option(metavar="FILE:LINE", help="Where the record stands; once for each record.")
    ],
) -> None:
    """Put records into quarantine: the batch under way is done without them.

    For a record at which a batch fails. The batch is given up, planned again, and finished. A record of a table that
    was read before is taken back. `lakejoin quarantine retry` reads these records again.
    """
    from lakejoin.orchestration.runs.put_in_quarantine import place_of, put_in_quarantine

    pipeline = options.load_pipeline(config)
    places = [place_of(name, text) for text in record]
    session = partial(options.open_session, pipeline)
    follow(lambda progress: put_in_quarantine(pipeline, session, places, progress=progress), None)
