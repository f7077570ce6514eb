"""Builds the command line: what `lakejoin --help` lists, with a module for each command.

Each command imports Spark, Dagster or Great Expectations only when it is started, so that help, `validate` and `status`
answer at once and start no JVM.
"""

import atexit
import logging
import os
import sys
import traceback
from contextlib import suppress
from typing import Annotated, NoReturn

import typer

from lakejoin.orchestration.cli.certify import certify
from lakejoin.orchestration.cli.check import check
from lakejoin.orchestration.cli.dangling import dangling
from lakejoin.orchestration.cli.demo import demo
from lakejoin.orchestration.cli.dev import dev
from lakejoin.orchestration.cli.diff import diff
from lakejoin.orchestration.cli.doctor import doctor
from lakejoin.orchestration.cli.engine import engine
from lakejoin.orchestration.cli.exit_codes import FAILED, Commands
from lakejoin.orchestration.cli.explain import explain
from lakejoin.orchestration.cli.init import ManyFiles, init
from lakejoin.orchestration.cli.maintain import maintain
from lakejoin.orchestration.cli.metrics import metrics
from lakejoin.orchestration.cli.migrate import migrate
from lakejoin.orchestration.cli.quarantine import quarantine
from lakejoin.orchestration.cli.reconcile import reconcile
from lakejoin.orchestration.cli.references import references
from lakejoin.orchestration.cli.repair import repair
from lakejoin.orchestration.cli.run import run
from lakejoin.orchestration.cli.show import show
from lakejoin.orchestration.cli.status import status
from lakejoin.orchestration.cli.terminal import PrintableLines, complain_lines
from lakejoin.orchestration.cli.test import unit_tests
from lakejoin.orchestration.cli.validate import validate
from lakejoin.orchestration.cli.verify import verify
from lakejoin.orchestration.cli.warm import warm

_OF_PY4J = ("Exception while sending command.", "KeyboardInterrupt while sending command.")
"""What Py4J logs when the JVM is gone, or when the user interrupts."""

app = typer.Typer(
    name="lakejoin",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(demo)
app.command(cls=ManyFiles)(init)
for command in (
    validate, run, status, metrics, show, explain, verify, diff, certify, dangling, references, check, maintain,
    migrate, reconcile, repair, dev, warm, doctor,
):  # fmt: skip
    app.command()(command)
app.command("test")(unit_tests)
app.add_typer(quarantine, name="quarantine")
app.add_typer(engine, name="engine")


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            number = version("lakejoin")
        except PackageNotFoundError:
            number = "from a source tree that is not installed"
        typer.echo(f"lakejoin {number}")
        raise typer.Exit


@app.callback()
def lakejoin(
    *,
    _: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version and end."),
    ] = False,
) -> None:
    """Keep foreign-key joins of change data up to date in Delta tables.

    Exit codes: 0 done, 1 a check or a batch failed, 2 wrong usage or configuration, 130 interrupted.
    """


def main() -> None:
    """Run the command that the process was started with, and end the process with its exit code."""
    # with a traceback, and past its own loggers; the command says so in a line
    logging.getLogger().addFilter(lambda record: record.msg not in _OF_PY4J)
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(PrintableLines())
    try:
        app(prog_name="lakejoin")
    except SystemExit as end:
        _leave(end.code if isinstance(end.code, int) else int(end.code is not None))
    except Exception:  # noqa: BLE001 - a mistake of ours, whose traceback may show a text of a source
        complain_lines(traceback.format_exc())
        _leave(FAILED)


def _leave(code: int) -> NoReturn:
    """End the process without taking Python down.

    A thread of Arrow that comes back from its work meanwhile would abort the process, and the exit code of what was
    done would be that of a crash (apache/arrow#34314).
    """
    atexit._run_exitfuncs()  # noqa: SLF001 - nothing else does what was registered for the end
    with suppress(OSError):  # whoever read the output is gone
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


__all__ = ["app", "main"]
