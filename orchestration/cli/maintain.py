"""Runs `lakejoin maintain`: folds, compacts and vacuums what is due, and prints what it did."""

from typing import TYPE_CHECKING, Annotated

import typer

from lakejoin.orchestration.cli import options
from lakejoin.orchestration.cli.exit_codes import FAILED
from lakejoin.orchestration.cli.options import Config
from lakejoin.orchestration.cli.terminal import Cell, Row, print_table, progress_bar, say

if TYPE_CHECKING:
    from lakejoin.orchestration.maintenance.maintain import Done
    from lakejoin.orchestration.maintenance.steps import Step
    from lakejoin.storage.delta_log.live_files import Extent

_MIB = 1024 * 1024


def maintain(
    config: Config,
    *,
    everything: Annotated[
        bool, typer.Option("--all", help="Do whatever would change anything, due or not.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Only say what could be done, and the figures that decide about it."),
    ] = False,
) -> None:
    """Keep the lake small and fast.

    Folds, compaction, vacuum and checkpoints of Delta's logs, as far as they are due; where nothing is, no Spark is
    started. Can run beside batches: it holds the lake for one step at a time, and a batch that waits goes first. Exit
    code 1 where a step failed.
    """
    from lakejoin.orchestration.maintenance.maintain import find_steps
    from lakejoin.orchestration.maintenance.maintain import maintain as work

    pipeline = options.load_pipeline(config)
    if dry_run:
        _print_found(find_steps(pipeline), everything=everything)
        return
    done: list[Done] = []
    try:
        with progress_bar("looking", None) as bar:
            for step in work(
                pipeline, lambda: options.open_session(pipeline), everything=everything, progress=bar.describe
            ):
                done.append(step)
                bar.advance()
    finally:
        _print_done(done)
    if not done:
        say("Nothing is due; `lakejoin maintain --dry-run` says what decides about it.")
    if any(step.failed for step in done):
        raise typer.Exit(FAILED)


def _print_found(steps: "list[Step]", *, everything: bool) -> None:
    rows: list[Row] = [
        (step.work, step.table, "yes" if step.finding.due or everything else "no", step.finding.why)
        for step in steps
    ]
    if rows:
        print_table("What could be done", ["what", "table", "now", "why"], rows)
    else:
        say("Nothing could be done: the lake is as small as its retention allows.")


def _print_done(done: "list[Done]") -> None:
    rows: list[Row] = []
    for step in (step for step in done if not step.skipped):
        both = [_figures(step.before), _figures(step.after)]
        rows.append(
            (
                step.step.work,
                step.step.table,
                *[figure for pair in zip(*both, strict=True) for figure in pair],
            )
        )
    if rows:
        header = ["what", "table", "files", "after", "live MiB", "after", "stored MiB", "after"]
        print_table("Done", header, rows)
    for step in (step for step in done if step.skipped):
        outcome = "failed" if step.failed else "left for later"
        say(f"{outcome}: {step.step.work} {step.step.table}: {step.skipped}")


def _figures(extent: "Extent | None") -> tuple[Cell, Cell, Cell]:
    """Live files, and MiB live and on disk; nothing of what is no table."""
    if extent is None:
        return "", "", ""
    return extent.files, extent.live_bytes / _MIB, extent.stored_bytes / _MIB
