"""Turns errors into messages and exit codes: 1 for failed work, 2 for wrong usage, 130 for an interrupted command."""

from typing import Any

import typer
from typer.core import TyperGroup

from lakejoin.orchestration.cli.terminal import complain
from lakejoin.storage.errors import ConfigurationChanged, LakejoinError

FAILED = 1
"""A check or a batch failed."""
WRONG = 2
"""Wrong usage or configuration."""


class Commands(TyperGroup):
    """Commands whose `LakejoinError`s, and an interrupt, become a message; any other error keeps its traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; a `LakejoinError` is printed and becomes the exit code."""
        try:
            return super().invoke(ctx)
        except LakejoinError as error:
            for line in error.lines:
                complain(line)
            raise typer.Exit(exit_code(error)) from None
        except KeyboardInterrupt:
            complain("Interrupted. Every finished batch stays, and a run goes on from there.")
            raise


def exit_code(error: LakejoinError) -> int:
    """Return 2 for what the user can correct in what was typed or configured, 1 for anything else."""
    from lakejoin.orchestration.config.problems import ConfigurationError
    from lakejoin.orchestration.errors import WrongUsage

    return WRONG if isinstance(error, ConfigurationError | ConfigurationChanged | WrongUsage) else FAILED
