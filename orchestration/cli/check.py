"""Runs `lakejoin check`: checks whether the joined tables keep their rules, prints the result and writes Data Docs."""

from typing import TYPE_CHECKING, Annotated

import typer

from lakejoin.orchestration.cli import options
from lakejoin.orchestration.cli.exit_codes import FAILED
from lakejoin.orchestration.cli.options import Config
from lakejoin.orchestration.cli.summary import print_figures
from lakejoin.orchestration.cli.terminal import Row, complain, print_table, say

if TYPE_CHECKING:
    from lakejoin.expectations.results import RuleResult
    from lakejoin.orchestration.checks.check_lake import Checked


def check(
    config: Config,
    *,
    full: Annotated[
        bool, typer.Option("--full", help="Check all rows, not only those that the last batches touched.")
    ] = False,
    batches: Annotated[
        int, typer.Option(min=1, metavar="N", help="Check the rows that the last N batches touched.")
    ] = 1,
) -> None:
    """Check the rules of every table and join.

    They run as Great Expectations suites and make Data Docs. Figures are held against what the file expects of them.
    Exit code 1 where a rule is violated or a figure exceeded; offending rows are shown.
    """
    pipeline = options.load_pipeline(config)
    _check_published(pipeline.lake)
    spark = options.open_session(pipeline)
    from lakejoin.orchestration.checks.check_lake import check_lake

    run = "check --full" if full else "check"
    checked = check_lake(pipeline, spark, batches=None if full else batches, run=run)
    print_checked(checked)
    if not checked.passed:
        raise typer.Exit(FAILED)


def _check_published(lake: str) -> None:
    """Say that there is nothing to check before Spark is started for it."""
    from lakejoin.orchestration.lake_state.published_snapshot import published_snapshot
    from lakejoin.storage.lake.journal import Journal
    from lakejoin.storage.lake.layout import Lake

    published_snapshot(Journal(Lake(lake)))


def print_checked(checked: "Checked") -> None:
    """Print each rule with its result, then the rows that offend some."""
    rows = [_row(name, result) for name, results in checked.results.items() for result in results]
    print_table(f"Rules over {_scope(checked)}", ["table or join", "rule", "result", "offending"], rows)
    for name, results in checked.results.items():
        for result in results:
            _print_offending(name, result)
    _print_dangling(checked)
    print_figures(checked.figures)
    for name in checked.not_begun:
        say(
            f"{name}: not checked; it was declared since: `lakejoin run` begins with it, or says what it needs"
        )
    if checked.unpublished is not None:
        complain(f"warning: {checked.unpublished}")
    elif checked.docs is not None:
        say(f"Data Docs: {checked.docs.index}")


def _print_dangling(checked: "Checked") -> None:
    """Print how many foreign keys point nowhere: no fault of the lake, and so no rule."""
    rows: list[Row] = [
        (
            found.name,
            found.left_rows,
            found.dangling,
            f"{found.share:.2%}",
            found.bound.text,
            "EXCEEDED" if found.exceeds else "within",
        )
        for found in checked.dangling
    ]
    if rows:
        print_table(
            f"Foreign keys that point nowhere, as of batch {checked.through} (`lakejoin dangling CONFIG JOIN`)",
            ["join", "left rows", "dangling", "share", "expected", "result"],
            rows,
        )


def _scope(checked: "Checked") -> str:
    if checked.since is None:
        return f"all rows as of batch {checked.through}"
    if checked.through - checked.since == 1:
        return f"the rows that batch {checked.through} touched"
    return f"the rows that batches {checked.since + 1} to {checked.through} touched"


def _row(name: str, result: "RuleResult") -> Row:
    outcome = "holds" if result.success else "not checked" if result.error else "VIOLATED"
    return name, result.rule, outcome, result.unexpected_count


def _print_offending(name: str, result: "RuleResult") -> None:
    if result.success:
        return
    say(f"{name}: {result.rule}: {result.statement}")
    if result.error:
        say(f"  could not be checked: {result.error}")
    for row in result.sample:
        say(f"  {row}")
    if result.unexpected_count > len(result.sample):
        say(f"  and {result.unexpected_count - len(result.sample):,} more")
