"""Runs `lakejoin dangling`: prints the foreign keys of a join that point at no right row."""

from typing import Annotated

import typer

from lakejoin.orchestration.cli import options
from lakejoin.orchestration.cli.options import AsOfBatch, Config, Form, JoinOfTables
from lakejoin.orchestration.cli.show import ROWS, hand_out


def dangling(
    config: Config,
    join: JoinOfTables,
    *,
    limit: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help=f"At most N keys; by default {ROWS} as a table, else all."),
    ] = None,
    form: Form = "table",
    as_of_batch: AsOfBatch = None,
) -> None:
    """Show the foreign keys of a join that point at no right row, with how many left rows hold each, most first.

    A left row whose foreign key is null points at nothing, and is left out.
    """
    from lakejoin.orchestration.cli.show_rows import open_report
    from lakejoin.orchestration.show.references import DANGLING

    shown = open_report(options.load_pipeline(config), join, DANGLING, as_of_batch)
    hand_out(shown, form, limit)
