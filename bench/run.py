"""Races Lakejoin against recomputing the join: `run.py --workload DIR --batches N --json FILE`.

README.md says what is measured. Exit code 1 for a wrong answer, 2 for wrong usage.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script, from wherever

from bench.contest.arguments import course, parser
from bench.contest.entry import Track, run_race, warm_up
from bench.contest.explain import explanation
from bench.contest.kept import kept_file, read, write, write_result
from bench.contest.race import Round
from bench.contest.report import HEADER, RIVALS, ratio_name, summary, table_row
from bench.contest.scratch import scratch
from bench.contest.surroundings import heading, rows, versions
from bench.tpch.answers import answer_file, change_file
from bench.workload import made_file
from lakejoin.orchestration.cli.terminal import print_table, say
from lakejoin.storage.errors import LakejoinError
from lakejoin.storage.spark.session import start_session


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the race that the arguments describe; return the exit code."""
    options = parser().parse_args(arguments)
    missing = next((file for file in _needed(options.workload, options.batches) if not file.is_file()), None)
    if missing is not None:
        sys.stderr.write(f"{missing}: missing; `bench/workload.py` makes a workload with so many batches\n")
        return 2
    try:
        with scratch(options.workload, keep=options.keep) as folder, _session(options, folder) as spark:
            where = _surroundings(options, spark)
            loaded = sum(files[0] for files in where["rows"].values())
            result = where | summary(_rounds(options, spark, folder), loaded)
        if options.keep_lake is not None:
            write({key: where[key] for key in ("date", "commit")}, kept_file(options.keep_lake))
    except LakejoinError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    write_result(result, options.json)
    _show(result)
    return 0


def _needed(workload: Path, batches: int) -> Iterator[Path]:
    for batch in range(batches + 1):
        yield answer_file(workload, batch)
        yield from (change_file(workload, side, batch) for side in ("left", "right"))


@contextmanager
def _session(options: argparse.Namespace, folder: Path) -> Iterator[SparkSession]:
    conf = {"spark.driver.memory": options.driver_memory, "spark.local.dir": str(folder / "spark")}
    if options.stage_bytes:  # Spark counts no bytes of a read that Parquet puts together of several
        conf["spark.hadoop.parquet.hadoop.vectored.io.enabled"] = "false"
    spark = start_session(options.master, conf)
    try:
        yield spark
    finally:
        spark.stop()


def _surroundings(options: argparse.Namespace, spark: SparkSession) -> dict[str, Any]:
    return heading(options) | {
        "versions": versions(spark),
        "workload": options.workload.absolute().name,
        "made": read(made_file(options.workload)),
        "lake": read(kept_file(options.lake)) if options.lake else None,
        "rivals_every": options.rivals_every,
        "maintain_every": options.maintain_every,
        "rows": rows(options.workload, options.batches),
        "warmed_up": options.warm_up,
    }


def _rounds(options: argparse.Namespace, spark: SparkSession, folder: Path) -> list[Round]:
    """Warm up, race, and say how it goes."""
    if options.warm_up:
        say("warming up")
        warm_up(Track(spark, folder / "warm-up", options.driver_memory), options.workload, options.contenders)
    track = Track(spark, folder / "race", options.driver_memory)
    asked, rounds = course(options), []
    for turn in run_race(track, options.workload, options.contenders, asked):
        rounds.append(turn)
        what = f"batch {turn.batch}" if turn.batch else "first load"
        answer = ", as expected" if asked.checks(turn.batch) else ""
        say(f"{what}: {turn.contender} {turn.cost.wall_seconds:.2f} s{answer}")
        if options.explain and turn.contender == "ours" and turn.batch == options.batches:
            options.explain.write_text(explanation(spark, turn.started, turn.cost.wall_seconds))
    return rounds


def _show(result: Mapping[str, Any]) -> None:
    loads, medians = result["first_load"], result["medians"]
    if loads:
        print_table("First load", HEADER, [table_row(name, load) for name, load in loads.items()])
    print_table("A batch (medians)", HEADER, [table_row(name, median) for name, median in medians.items()])
    for rival in RIVALS:
        ratio = result[ratio_name(rival)]
        if ratio is not None:
            say(f"ratio to {rival}: {ratio} (above 1: ours is faster)")


if __name__ == "__main__":
    sys.exit(main())
