"""Runs `lakejoin run`: works off what is pending, and prints what became of it."""

import dataclasses
from collections.abc import Collection, Iterator
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from lakejoin.orchestration.cli import options
from lakejoin.orchestration.cli.dry_run import left_to_settle, print_work
from lakejoin.orchestration.cli.options import Config
from lakejoin.orchestration.cli.progress import follow
from lakejoin.orchestration.cli.terminal import complain, say

if TYPE_CHECKING:
    from lakejoin.orchestration.batch.context import Progress
    from lakejoin.orchestration.config import Pipeline
    from lakejoin.orchestration.planning.backlog import Backlog
    from lakejoin.storage.lake.plan import Published
    from lakejoin.storage.sources.files.source_files import Dates


def run(  # noqa: PLR0913 - one parameter for each option
    config: Config,
    *,
    start: Annotated[
        datetime | None,
        typer.Option("--from", formats=["%Y-%m-%d"], metavar="DATE", help="First {date} to read, inclusive."),
    ] = None,
    end: Annotated[
        datetime | None,
        typer.Option("--to", formats=["%Y-%m-%d"], metavar="DATE", help="Last {date} to read, inclusive."),
    ] = None,
    batch_by: Annotated[
        Literal["size", "date", "all"],
        typer.Option(help="Put small days together; or one batch for each {date}; or one for everything."),
    ] = "size",
    batch_rows: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Cut batches to about N records; put days together up to N."),
    ] = None,
    batches: Annotated[int | None, typer.Option(min=1, metavar="N", help="Stop after N batches.")] = None,
    accept: Annotated[
        list[str] | None,
        typer.Option(metavar="RULE", help="Publish although this rule is violated; it is recorded."),
    ] = None,
    rebuild: Annotated[
        list[str] | None,
        typer.Option(
            metavar="JOIN",
            help="First compute this join anew, as it is declared now, and the joins over it. Readers see what it was "
            "until it is complete.",
        ),
    ] = None,
    replace: Annotated[
        str | None,
        typer.Option(
            metavar="DATE|FILE",
            help="First take the files of this {date}, or of this name, which were exported again, in the place of "
            "what they were.",
        ),
    ] = None,
    flush: Annotated[
        bool,
        typer.Option(
            "--flush", help="At the end, release the records of streams that still wait for their grace."
        ),
    ] = False,
    resident: Annotated[
        bool | None,
        typer.Option(
            "--resident/--no-resident",
            help="Whether the JVM stays for later runs; by default as `engine` in the configuration says.",
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Only say what the run would begin with, and whether the lake takes it."
        ),
    ] = False,
) -> None:
    """Work off what is pending.

    An unfinished batch first, then new or rebuilt joins, then new input, dates in order; tables without {date} are read
    whole in the first batch. What was read once is not read again, so a run can be
    repeated without effect.
    """
    from lakejoin.orchestration.lake_state.active_joins import joins_to_rebuild
    from lakejoin.orchestration.runs.run import check_accepted

    pipeline = options.load_pipeline(config)
    dates = _range(start, end)
    check_accepted(pipeline, accept or ())
    rebuilt = joins_to_rebuild(pipeline, rebuild or ())
    now = datetime.now(UTC)
    waiting = _waiting(pipeline, dates, rebuilt, now)
    flush = flush and any(join.waits for join in pipeline.joins.values())
    if waiting.is_empty and replace is None and not (flush and _buffered(pipeline)):
        say(f"Nothing pending: {_files_read(pipeline, waiting, dates)}.")
        return
    if dry_run:
        _check_new_joins(pipeline, rebuilt)
        print_work(pipeline, waiting, replace, flush=flush)
        return
    is_known = batch_rows is None and (batch_by == "date" or len(waiting.dates) <= 1)
    expected = waiting.batches + flush + (replace is not None) if is_known else None

    def work(progress: "Progress") -> "Iterator[Published]":
        spark = options.open_session(pipeline, resident=resident)
        from lakejoin.orchestration.planning.replaced_files import day_or_name
        from lakejoin.orchestration.runs.run import run_batches

        return run_batches(
            pipeline, spark, dates=dates, batch_by=batch_by, batch_rows=batch_rows, batches=batches,
            accept=accept or (), flush=flush, rebuild=rebuilt,
            replace=day_or_name(replace), progress=progress,
        )  # fmt: skip

    done = follow(work, expected if batches is None else batches)
    if waiting.young:
        waiting = _as_left(pipeline, waiting, dates, now)
    if not done:
        say(f"Nothing pending: {_files_read(pipeline, waiting, dates)}.")
    elif waiting.young:
        say(left_to_settle(waiting.young))
    if bad := sum(counts.get("quarantined", 0) for batch in done for counts in batch.tables.values()):
        say(f"{bad:,} record{'s' * (bad != 1)} could not be accepted: `lakejoin quarantine list {config}`")


def _check_new_joins(pipeline: "Pipeline", rebuilt: Collection[str]) -> None:
    """Refuse in a dry run, as a run does, a new join whose tables are there from an earlier time."""
    from lakejoin.orchestration.lake_state.active_joins import new_joins
    from lakejoin.storage.lake.journal import Journal
    from lakejoin.storage.lake.layout import Lake

    lake = Lake(pipeline.lake)
    new_joins(pipeline, lake, Journal(lake), rebuilt)


def _buffered(pipeline: "Pipeline") -> bool:
    """Whether records of a stream waited for their grace period when the last batch ended."""
    from lakejoin.storage.lake.journal import Journal
    from lakejoin.storage.lake.layout import Lake

    last = Journal(Lake(pipeline.lake)).last
    return last is not None and last.waits


def _range(start: datetime | None, end: datetime | None) -> "Dates | None":
    from lakejoin.orchestration.errors import WrongUsage

    if start is None and end is None:
        return None
    first, last = start.date() if start else date.min, end.date() if end else date.max
    if first > last:
        raise WrongUsage(f"--from {first} is after --to {last}; expected a range in the order of time")
    return first, last


def _waiting(
    pipeline: "Pipeline", dates: "Dates | None", rebuilt: Collection[str], now: datetime
) -> "Backlog":
    """List what is pending; warn about a source without any file: more often than not a mistyped path."""
    from lakejoin.orchestration.lake_state.config_fingerprints import check_shapes
    from lakejoin.orchestration.planning.backlog import backlog
    from lakejoin.storage.lake.journal import Journal
    from lakejoin.storage.lake.layout import Lake

    check_shapes(pipeline, Journal(Lake(pipeline.lake)), rebuilt)
    waiting = backlog(pipeline, now, dates=dates)
    for name in (name for name, count in waiting.found.items() if count == 0):
        complain(f"warning: {name}: no file matches {pipeline.inputs[name].source.place}")
    return dataclasses.replace(waiting, new_joins=waiting.new_joins + tuple(rebuilt))


def _as_left(pipeline: "Pipeline", waiting: "Backlog", dates: "Dates | None", now: datetime) -> "Backlog":
    """The backlog with those of its young files that the run left: meanwhile some were old enough for it."""
    from lakejoin.orchestration.planning.backlog import backlog

    return dataclasses.replace(waiting, young=backlog(pipeline, now, dates=dates).young)


def _files_read(pipeline: "Pipeline", waiting: "Backlog", dates: "Dates | None") -> str:
    found = [
        f"{name} {waiting.dumped.get(name) or pipeline.inputs[name].source_format.held(count)}"
        for name, count in waiting.found.items()
    ]
    if dates is not None:
        found += [left_to_settle(waiting.young)] * bool(waiting.young)
        return ", ".join(found) + "; other dates were not looked at"
    left = f" but {left_to_settle(waiting.young)}" if waiting.young else ""
    return ", ".join(found) + f", all read{left}"
