"""Runs `lakejoin test`: the unit tests of a pipeline, on the real engine, in lakes that are thrown away."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakejoin.orchestration.cli import options
from lakejoin.orchestration.cli.exit_codes import FAILED
from lakejoin.orchestration.cli.options import Config
from lakejoin.orchestration.cli.output_file import output_file
from lakejoin.orchestration.cli.terminal import say

if TYPE_CHECKING:
    from lakejoin.orchestration.config import Pipeline
    from lakejoin.orchestration.unit_tests.declared import UnitTest
    from lakejoin.orchestration.unit_tests.outcome import Outcome


def unit_tests(
    config: Config,
    *,
    tests: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The tests; by default lakejoin_tests.yaml beside lakejoin.yaml.",
            exists=True,
            dir_okay=False,
            readable=True,
        ),
    ] = None,
    only: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only tests whose names hold this text.")
    ] = None,
    update: Annotated[
        bool, typer.Option("--update", help="Write what came into the file as what is expected.")
    ] = False,
    junit: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write the outcome as JUnit's XML.", dir_okay=False),
    ] = None,
) -> None:
    """Run the unit tests of a pipeline: records that are given, and the rows that should come of them.

    On the real engine, side by side in a lake that is thrown away; neither the sources nor the lake of the pipeline
    are touched.
    """  # fmt: skip
    from lakejoin.orchestration.explain.sentences import counted
    from lakejoin.orchestration.unit_tests import report
    from lakejoin.orchestration.unit_tests.declared import file_of_tests
    from lakejoin.orchestration.unit_tests.running import run_tests

    pipeline = options.load_pipeline(config)
    path = tests or file_of_tests(pipeline)
    chosen = _chosen(pipeline, path, only)
    began = time.monotonic()
    outcomes = []
    for outcome in run_tests(pipeline, chosen, options.open_session):
        outcomes.append(outcome)
        if not outcome.passed:
            _print(path, outcome)
    seconds = time.monotonic() - began
    outcomes.sort(key=lambda outcome: outcome.test.number)
    failed = [outcome for outcome in outcomes if not outcome.passed]
    count = counted(len(outcomes), "test")
    say(f"{count} in {seconds:.1f} s: {len(outcomes) - len(failed):,} passed, {len(failed):,} failed")
    if junit is not None:
        with output_file("--junit", junit) as file:
            file.write(report.junit(pipeline.name, outcomes, seconds).encode())
    if update and (came := [outcome for outcome in failed if outcome.error is None]):
        report.update(path, came)
        say(f"{path}: what came is now what is expected; look at the change before you commit it")
        failed = [outcome for outcome in failed if outcome.error is not None]
    if failed:
        raise typer.Exit(FAILED)


def _chosen(pipeline: "Pipeline", path: Path, only: str | None) -> list["UnitTest"]:
    """Read the tests. Raises `ConfigurationError`, and `WrongUsage` where there is none."""
    from lakejoin.orchestration.errors import WrongUsage
    from lakejoin.orchestration.unit_tests.declared import read_tests

    if not path.exists():
        raise WrongUsage(
            f"{path}: no such file; write tests into it (docs/unit-tests.md), or name another by --tests"
        )
    declared = read_tests(pipeline, path)
    chosen = [test for test in declared if only is None or only in test.name]
    if not chosen:
        raise WrongUsage(f"--only {only!r}: none of the {len(declared)} tests in {path} has that in its name")
    return chosen


def _print(path: Path, outcome: "Outcome") -> None:
    from lakejoin.orchestration.unit_tests.report import failure_lines

    say(f"FAILED {outcome.test.name} ({path}:{outcome.test.line})")
    for line in failure_lines(outcome):
        say(f"  {line}")
