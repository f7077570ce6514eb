"""Runs `lakejoin status`: prints how far a pipeline is and what waits, without Spark."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from lakejoin.orchestration.cli import options
from lakejoin.orchestration.cli.options import Config
from lakejoin.orchestration.cli.summary import (
    batch_line,
    print_figures,
    print_joins,
    print_summary,
    print_tables,
)
from lakejoin.orchestration.cli.terminal import Row, print_table, say, say_json
from lakejoin.orchestration.cli.trend import print_trend

_TREND = 30
"""So many batches make a trend."""

if TYPE_CHECKING:
    from lakejoin.orchestration.config import Pipeline
    from lakejoin.orchestration.show.status import Status
    from lakejoin.storage.lake.plan import Published


def status(
    config: Config,
    form: Annotated[
        Literal["table", "json"],
        typer.Option("--format", help="For people, or one JSON object for programs."),
    ] = "table",
    batch: Annotated[
        int | None, typer.Option(metavar="B", help="Only what batch B did, and how long its stages took.")
    ] = None,
    *,
    trend: Annotated[
        bool, typer.Option("--trend", help="Only the figures of the last 30 batches, one beneath the other.")
    ] = False,
) -> None:
    """Show how far the pipeline is.

    Batches, counts by reason, quarantine, pending files; read from logs and listings, without Spark.
    """
    from lakejoin.orchestration.show.status import lake_status
    from lakejoin.storage.lake.journal import Journal
    from lakejoin.storage.lake.layout import Lake

    pipeline = options.load_pipeline(config)
    if batch is not None:
        _print_batch(pipeline, batch, form)
        return
    if trend:
        print_trend(Journal(Lake(pipeline.lake)).published, _TREND, form)
        return
    found = lake_status(pipeline, datetime.now(UTC))
    if form == "json":
        say_json(_told(pipeline, found))
        return
    say(f"{pipeline.name}: {found.batches} finished batch{'es' * (found.batches != 1)} in {pipeline.lake}")
    _print_batches(found)
    print_tables(found.tables)
    print_joins(found.joins)
    rows: list[Row] = [(t, *reason) for t, reasons in found.quarantine.items() for reason in reasons.items()]
    if rows:
        print_table("Quarantine (`lakejoin quarantine list CONFIG`)", ["table", "reason", "records"], rows)
    print_figures(found.figures)
    for name, time in found.settled.items():
        say(
            f"history of {name}: settled until {time:%Y-%m-%d %H:%M:%S} UTC; no record can change what was before"
        )
    _print_reached(found)
    _print_waiting(pipeline, found)
    for name, columns in found.undeclared.items():
        say(f"table {name}: source columns that are not declared, and so ignored: {', '.join(columns)}")
    for name in found.forgotten:
        say(
            f"join {name} is in the lake and no longer declared: its tables stay as they are, in joins/{name}; "
            "remove that directory when nobody needs it"
        )


def _print_batch(pipeline: "Pipeline", number: int, form: str) -> None:
    """Print what a finished batch did. Raises `WrongUsage` for one that there is not."""
    from lakejoin.orchestration.lake_state.published_snapshot import published_snapshot
    from lakejoin.storage.lake.journal import Journal
    from lakejoin.storage.lake.layout import Lake

    journal = Journal(Lake(pipeline.lake))
    plan = published_snapshot(journal, number)
    done = journal.published[number - 1]
    if form == "json":
        say_json(_done(done))
        return
    say(f"{batch_line(done)}; planned {plan.planned_at:%Y-%m-%d %H:%M:%S} UTC")
    rows: list[Row] = [(file.table, file.path, file.records) for file in plan.files if file.records]
    print_table("Input", ["table", "file", "records"], rows)
    print_summary([done])


def _done(batch: "Published") -> dict[str, Any]:
    """A finished batch as plain values."""
    return _cut(batch) | {
        "tables": {name: dict(counts) for name, counts in batch.tables.items()},
        "joins": {name: dict(counts) for name, counts in batch.joins.items()},
        "rows": dict(batch.rows),
        "seconds": dict(batch.seconds),
    }


def _cut(batch: "Published") -> dict[str, Any]:
    """Which batch it is."""
    return {
        "batch": batch.batch,
        "kind": batch.kind,
        "dates": [day.isoformat() for day in batch.dates],
        "planned_at": batch.planned_at.isoformat(),
    }


def _told(pipeline: "Pipeline", found: "Status") -> dict[str, Any]:
    """The status as one JSON object; `waiting` is null where a source cannot be listed, and `unlisted` says why."""
    waiting = found.backlog
    return {
        "pipeline": pipeline.name,
        "lake": pipeline.lake,
        "batches": found.batches,
        "last_cut": found.last and _cut(found.last),
        "unfinished": found.unfinished and found.unfinished.batch,
        "tables": found.tables,
        "joins": found.joins,
        "quarantine": found.quarantine,
        "expected": [
            {
                "table": one.subject,
                "figure": one.name,
                "found": one.found,
                "expected": one.bound.text,
                "holds": one.holds,
            }
            for one in found.figures
        ],
        "settled_until": {name: time.isoformat() for name, time in found.settled.items()},
        "waiting": waiting and [{"table": w.table, "file": w.file.name} for w in waiting.files],
        "offsets": waiting
        and {
            name: {at.part: {"next": at.next, "end": at.end, "lag": at.lag} for at in partitions}
            for name, partitions in waiting.reached.items()
        },
        "dumps": waiting
        and {
            name: {"last": _time(dumped.last), "due": _time(dumped.due)}
            for name, dumped in waiting.dumped.items()
        },
        "new_joins": waiting and waiting.new_joins,
        "unlisted": found.unlisted or None,
        "undeclared": found.undeclared,
        "forgotten": found.forgotten,
    }


def _time(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()


def _print_batches(found: "Status") -> None:
    if found.last is not None:
        say(f"last cut: {batch_line(found.last)}; planned {found.last.planned_at:%Y-%m-%d %H:%M:%S} UTC")
    if found.unfinished is not None:
        say(f"batch {found.unfinished.batch} is planned and not finished: `lakejoin run` begins with it")


def _print_reached(found: "Status") -> None:
    """Print how far topics are read, and how much of them waits."""
    of_topics = found.backlog.reached if found.backlog is not None else {}
    rows: list[Row] = [
        (name, at.part, at.next, at.end, at.lag) for name, all_ in of_topics.items() for at in all_
    ]
    if rows:
        print_table("Offsets by partition", ["table", "partition", "next", "end", "lag"], rows)


def _print_waiting(pipeline: "Pipeline", found: "Status") -> None:
    waiting = found.backlog
    if waiting is None:
        say(f"what is pending cannot be told: {found.unlisted}")
        return
    for name, count in waiting.found.items():
        files = [w.file.name for w in waiting.files if w.table == name]
        kind = "stream" if name in pipeline.streams else "table"
        if name in waiting.dumped:
            say(f"{kind} {name} {waiting.dumped[name]}" + "; a dump waits to be taken or read" * bool(files))
        elif count == 0:
            say(f"{kind} {name}: no file matches {pipeline.inputs[name].source.place}")
        elif files:
            share = pipeline.inputs[name].source_format.share(len(files), count)
            say(f"{kind} {name}: {share} wait, from {files[0]} on")
    for name in waiting.new_joins:
        _print_new(pipeline, name)
    if waiting.is_empty and found.batches:
        say("nothing is pending")


def _print_new(pipeline: "Pipeline", join: str) -> None:
    from lakejoin.orchestration.lake_state.active_joins import join_remains, rebuild_command
    from lakejoin.storage.lake.layout import Lake

    if join in pipeline.rebuildable and join_remains(Lake(pipeline.lake), join):
        say(f"join {join} is not kept up to date: {rebuild_command(pipeline, [join])} begins it anew")
    else:
        say(f"join {join} is new: the next run starts it from the rows there are")
