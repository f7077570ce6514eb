"""Runs `lakejoin references`: prints how many left rows refer to each right key, or the keys that none refers to."""

from typing import Annotated

import typer

from lakejoin.orchestration.cli import options
from lakejoin.orchestration.cli.options import AsOfBatch, Config, Form, JoinOfTables
from lakejoin.orchestration.cli.show import hand_out

KEYS = 100
"""How many right keys are shown to a person who does not say how many."""


def references(
    config: Config,
    join: JoinOfTables,
    *,
    unreferenced: Annotated[
        bool,
        typer.Option("--unreferenced", help="The right keys that no left row refers to, in their order."),
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help=f"At most N keys; by default {KEYS} as a table, else all."),
    ] = None,
    form: Form = "table",
    as_of_batch: AsOfBatch = None,
) -> None:
    """Show the right keys of a join with how many left rows refer to each, most first."""
    from lakejoin.orchestration.cli.show_rows import open_report
    from lakejoin.orchestration.show.references import FAN_OUT, UNREFERENCED

    report = UNREFERENCED if unreferenced else FAN_OUT
    shown = open_report(options.load_pipeline(config), join, report, as_of_batch)
    hand_out(shown, form, limit, rows=KEYS)
