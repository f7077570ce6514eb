"""What the tables of a first load take at least: `floor.py --lake DIR --workload DIR [PIECE ...]`.

The lake is what `run.py --keep-lake` made of the workload. The pieces, by default all of them in this order:

    recompute  the rival: the workload's files read, joined, and written as one Delta table
    sources    the tables that the first load commits, made of the same files by the shortest program there is
    tables     the same tables, each read from the lake and written again, all at once: nothing to work out
    each       the same, one after the other
    load       our first load of the workload, rules and bookkeeping included

Whatever makes these tables by Spark with these settings takes no less. A piece is run once, and what that took is told
apart: for the first piece it was in a new process, as a first load is one. Then comes the median of `--times` more, in
which the pieces take turns. Exit code 2 for wrong usage.
"""

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from statistics import median

from pyspark.sql import DataFrame, SparkSession

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script, from wherever

from bench.contest.arguments import add_session, count, kept_lake
from bench.contest.cost import Cost, Scope, measure
from bench.contest.jvm import collect_garbage, jobs
from bench.contest.least import least_tables
from bench.contest.live import live_bytes, tables_below
from bench.contest.ours import Ours
from bench.contest.recompute import recompute_first
from orchestration.cli.terminal import print_table
from storage.session import start_session

_FOLDED = {"rows", "subscription_store"}
"""Tables that maintenance makes, after the load."""
_PIECES = ("recompute", "sources", "tables", "each", "load")

Piece = Callable[[Path], None]
"""Writes Delta tables below a folder."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit code."""
    options = _parser().parse_args(arguments)
    spark = start_session(options.master, {"spark.driver.memory": options.driver_memory})
    lake, chosen = options.lake / "lake", options.pieces or _PIECES
    pieces = {
        name: piece for kind in chosen for name, piece in _pieces(kind, spark, lake, options.workload).items()
    }
    first = {name: _cost(spark, piece, options.lake) for name, piece in pieces.items()}
    turns = [
        {name: _cost(spark, piece, options.lake) for name, piece in pieces.items()}
        for _ in range(options.times)
    ]
    rows = [
        (
            name,
            first[name].wall_seconds,
            first[name].cpu_seconds,
            median(turn[name].wall_seconds for turn in turns),
            median(turn[name].cpu_seconds for turn in turns),
            round(first[name].file_bytes / 2**20),
        )
        for name in pieces
    ]
    columns = ["piece", "first: seconds", "CPU seconds", "then: seconds", "CPU seconds", "MiB"]
    print_table("What a first load takes at least", columns, rows)
    return 0


def _pieces(kind: str, spark: SparkSession, lake: Path, workload: Path) -> Mapping[str, Piece]:
    if kind == "recompute":
        return {kind: lambda folder: recompute_first(spark, workload, folder / "joined")}
    if kind == "load":
        return {kind: lambda folder: _load(spark, workload, folder)}
    if kind == "sources":
        return {kind: lambda folder: _write(least_tables(spark, workload), folder)}
    names = [
        str(table.relative_to(lake))
        for table in tables_below(lake)
        if not table.name.startswith("_") and table.name not in _FOLDED and live_bytes(table)
    ]
    if kind == "tables":
        return {kind: lambda folder: _write(_read(spark, lake, names), folder)}
    return {name: partial(_write_one, spark, lake, name) for name in names}


def _load(spark: SparkSession, workload: Path, folder: Path) -> None:
    ours = Ours(spark, workload, folder / "ours")
    ours.prepare(0)
    ours.run(0)


def _read(spark: SparkSession, lake: Path, names: Sequence[str]) -> Mapping[str, DataFrame]:
    return {name: spark.read.format("delta").load(str(lake / name)) for name in names}


def _write_one(spark: SparkSession, lake: Path, name: str, folder: Path) -> None:
    _write(_read(spark, lake, [name]), folder)


def _write(tables: Mapping[str, DataFrame], folder: Path) -> None:
    def write(table: str) -> None:
        tables[table].write.format("delta").save(str(folder / table))

    with ThreadPoolExecutor() as pool:
        list(pool.map(write, tables))


def _cost(spark: SparkSession, piece: Piece, beside: Path) -> Cost:
    """What it costs to write a piece once, beside the kept lake."""
    folder = Path(tempfile.mkdtemp(dir=beside))
    scope = Scope(pid=os.getpid(), without=(), folder=folder, jobs=lambda: jobs(spark))
    collect_garbage(spark)
    try:
        _, cost = measure(partial(piece, folder), scope)
    finally:
        shutil.rmtree(folder)
    return cost


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="floor.py", description="Make again what a first load makes.")
    parser.add_argument("pieces", nargs="*", choices=[*_PIECES, []], metavar="PIECE", help=" ".join(_PIECES))
    parser.add_argument(
        "--lake", type=kept_lake, required=True, metavar="DIR", help="made by run.py --keep-lake"
    )
    parser.add_argument("--workload", type=Path, required=True, metavar="DIR", help="the lake is made of it")
    parser.add_argument("--times", type=count, default=5, metavar="N", help="turns (default: 5)")
    add_session(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
