"""Runs `lakejoin demo`: joins a week of real flights and compares each day with PostgreSQL's answers."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakejoin.orchestration.cli import options
from lakejoin.orchestration.cli.check import print_checked
from lakejoin.orchestration.cli.exit_codes import FAILED
from lakejoin.orchestration.cli.summary import batch_line, print_summary
from lakejoin.orchestration.cli.terminal import console, print_rows, progress_bar, say

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakejoin.orchestration.demo.csv_comparison import Comparison
    from lakejoin.orchestration.demo.days import Day
    from lakejoin.orchestration.demo.example import Example

SHOWN = (
    *("flight_id", "carrier", "tailnum", "origin", "dest", "status", "fare_total"),
    *("plane_tailnum", "plane_manufacturer", "plane_model", "plane_seats"),
)
"""Columns of the joined rows that are shown: those that fit beside each other."""


def demo(
    *,
    lake: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            file_okay=False,
            help="Lake of the demo, emptied first; by default lake in the example.",
        ),
    ] = None,
    example: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            file_okay=False,
            help="Folder with lakejoin.yaml and data; by default a week of flights.",
        ),
    ] = None,
) -> None:
    """Join a week of flights with their planes.

    Each day is compared with what PostgreSQL answered; at the end, each departure's weather is. Starts from an empty
    lake. Exit code 1 unless every comparison is equal, every other weather has a cause and every check passes.
    """
    from lakejoin.orchestration.demo.days import empty_lake
    from lakejoin.orchestration.demo.example import open_example, own_example

    opened = open_example(example or own_example(), lake)
    empty_lake(opened.pipeline)
    days, spark = _run(opened)
    print_summary([day.batch for day in days])
    _print_cost(days)
    _print_rows(opened, spark)
    passed = _explain(opened, spark) & _check(opened, spark)
    if lake is None:
        say(f"The web interface: lakejoin dev {opened.pipeline.path}")
    equal = sum(comparison.equal for day in days for comparison in day.comparisons)
    say(f"equal to PostgreSQL: {equal} of {opened.comparisons}")
    if equal != opened.comparisons or not passed:
        raise typer.Exit(FAILED)


def _run(example: "Example") -> tuple[list["Day"], "SparkSession"]:
    from lakejoin.orchestration.demo.days import run_days

    days = []
    with progress_bar("starting Spark", len(example.days)) as bar:
        spark = options.open_session(example.pipeline)
        for day in run_days(example, spark, bar.describe):
            days.append(day)
            say(f"{batch_line(day.batch)}, {day.seconds:.1f} s ({_slowest(day)})")
            for comparison in day.comparisons:
                _print_comparison(comparison)
            bar.advance()
    return days, spark


def _print_cost(days: Sequence["Day"]) -> None:
    from lakejoin.orchestration.demo.peak_memory import peak_megabytes
    from lakejoin.storage.spark.session import jvm_process

    peak = peak_megabytes(jvm_process())
    memory = "" if peak is None else f"; peak memory {peak:,} MB, Java and Python together"
    say(f"{len(days)} days in {sum(day.seconds for day in days):.1f} s, without the comparisons{memory}")


def _slowest(day: "Day") -> str:
    stages = sorted(day.batch.seconds.items(), key=lambda stage: -stage[1])[:3]
    return ", ".join(f"{name} {seconds:.1f}" for name, seconds in stages)


def _print_comparison(found: "Comparison") -> None:
    size = f"{found.rows:,} rows" if found.rows == found.found else f"{found.found:,} rows for {found.rows:,}"
    say(f"  {found.name}: {size}, {found.columns} columns, {found.differences:,} differences")
    for example in found.examples:
        say(f"    {example}")
    if found.differences > len(found.examples):
        say(f"    and {found.differences - len(found.examples):,} more")


def _check(example: "Example", spark: "SparkSession") -> bool:
    from lakejoin.orchestration.checks.check_lake import check_lake

    checked = check_lake(example.pipeline, spark, batches=None, run="demo")
    print_checked(checked)
    return checked.passed


def _explain(example: "Example", spark: "SparkSession") -> bool:
    """Say how the departures compare, and whether every difference has a cause."""
    from lakejoin.orchestration.demo.departures import EQUAL, JOIN, explain, has_departures
    from lakejoin.orchestration.lake_state.published_snapshot import published_snapshot
    from lakejoin.storage.lake.journal import Journal
    from lakejoin.storage.lake.layout import Lake
    from lakejoin.storage.state.pinned_state import State

    if not has_departures(example):
        return True
    lake = Lake(example.pipeline.lake)
    found = explain(example, State(spark, lake, published_snapshot(Journal(lake))))
    say(
        f"{JOIN}: {found.causes.get(EQUAL, 0):,} of {found.flights:,} departed flights as PostgreSQL has them"
    )
    for cause, flights in found.causes.items():
        if cause != EQUAL:
            say(f"  {flights:,} differ: {cause}")
    return found.is_explained


def _print_rows(example: "Example", spark: "SparkSession") -> None:
    from lakejoin.orchestration.lake_state.published_snapshot import published_snapshot
    from lakejoin.orchestration.show.tables import find_view
    from lakejoin.orchestration.show.text_formats import texts
    from lakejoin.storage.lake.journal import Journal
    from lakejoin.storage.lake.layout import Lake
    from lakejoin.storage.state.pinned_state import State

    lake, name = Lake(example.pipeline.lake), next(iter(example.pipeline.joins))
    snapshot = published_snapshot(Journal(lake))
    rows = find_view(example.pipeline, name)(State(spark, lake, snapshot)).shown(internal=False)
    columns = [column for column in SHOWN if column in rows.columns]
    found = texts(rows.select(*columns).limit(5)).collect()
    say(f"The first rows of {name} (lakejoin show CONFIG {name})")
    print_rows(console(), columns, [tuple(row) for row in found])
