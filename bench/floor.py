"""What the tables of a first load take to be written, with nothing to work out: `floor.py --lake DIR`.

DIR is what `run.py --keep-lake` made. Spark reads each table that the first load commits, and writes its rows as a new
Delta table: all in turn, and all at once as a batch may. Whatever makes these tables by Spark with these settings takes
no less. Prints medians, and what the first time took in the new process, as a first load is one; exit code 2 for wrong
usage.
"""

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from statistics import median

from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script, from wherever

from bench.contest.arguments import add_session, count, kept_lake
from bench.contest.cost import Cost, Scope, measure
from bench.contest.jvm import collect_garbage, jobs
from bench.contest.live import live_bytes, tables_below
from orchestration.cli.terminal import print_table
from storage.session import start_session

_FOLDED = {"rows", "subscription_store"}
"""Tables that maintenance makes, after the load."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; return the exit code."""
    options = _parser().parse_args(arguments)
    lake = options.lake / "lake"
    tables = [
        str(table.relative_to(lake))
        for table in tables_below(lake)
        if not table.name.startswith("_") and table.name not in _FOLDED
    ]
    spark = start_session(options.master, {"spark.driver.memory": options.driver_memory})
    alone: dict[str, list[Cost]] = {table: [] for table in tables}
    first = _written(spark, lake, tables)  # finds nothing compiled
    together: list[Cost] = []
    for _ in range(options.times):
        for table in tables:
            alone[table].append(_written(spark, lake, [table]))
        together.append(_written(spark, lake, tables))
    rows = [(table, *_figures(alone[table]), _mib(lake / table)) for table in tables]
    seconds, cpu, size = (round(sum(column), 2) for column in list(zip(*rows, strict=True))[1:])
    rows += [
        ("all in turn", seconds, cpu, size),
        ("all at once", *_figures(together), size),
        ("all at once, the first time", *_figures([first]), size),
    ]
    print_table("Writing what a first load makes", ["table", "seconds", "CPU seconds", "MiB"], rows)
    return 0


def _written(spark: SparkSession, lake: Path, tables: Sequence[str]) -> Cost:
    """The cost of writing these tables once more, at once."""
    target = Path(tempfile.mkdtemp(dir=lake.parent))
    scope = Scope(pid=os.getpid(), without=(), folder=target, jobs=lambda: jobs(spark))
    collect_garbage(spark)
    try:
        _, cost = measure(partial(_write, spark, lake, target, tables), scope)
    finally:
        shutil.rmtree(target)
    return cost


def _write(spark: SparkSession, lake: Path, target: Path, tables: Sequence[str]) -> None:
    def write(table: str) -> None:
        rows = spark.read.format("delta").load(str(lake / table))
        rows.write.format("delta").save(str(target / table))

    with ThreadPoolExecutor() as pool:
        list(pool.map(write, tables))


def _figures(costs: Sequence[Cost]) -> tuple[float, float]:
    return median(c.wall_seconds for c in costs), median(c.cpu_seconds for c in costs)


def _mib(table: Path) -> float:
    return round(live_bytes(table) / 2**20, 1)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="floor.py", description="Write the tables of a first load again.")
    parser.add_argument(
        "--lake", type=kept_lake, required=True, metavar="DIR", help="made by run.py --keep-lake"
    )
    parser.add_argument("--times", type=count, default=5, metavar="N", help="turns (default: 5)")
    add_session(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
