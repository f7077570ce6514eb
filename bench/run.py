"""Races Lakejoin against recomputing the join: `run.py --workload DIR --batches N --json FILE`.

README.md says what is measured. Exit code 1 for a wrong answer, 2 for wrong usage.
"""

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script, from wherever

from bench.contest.entry import NAMES, Track, run_race, warm_up
from bench.contest.explain import explanation
from bench.contest.race import Round
from bench.contest.report import HEADER, summary, table_row
from bench.contest.surroundings import commit, machine, rows, versions
from bench.tpch.answers import answer_file, change_file
from orchestration.cli.terminal import print_table, say
from storage.errors import LakejoinError
from storage.session import start_session

RESULTS = Path(__file__).resolve().parent / "results"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the race that the arguments describe; return the exit code."""
    options = _parser().parse_args(arguments)
    missing = next((file for file in _needed(options.workload, options.batches) if not file.is_file()), None)
    if missing is not None:
        sys.stderr.write(f"{missing}: missing; `bench/workload.py` makes a workload with so many batches\n")
        return 2
    try:
        with _scratch(options.workload, keep=options.keep) as folder, _session(options, folder) as spark:
            where = _surroundings(options, spark)
            loaded = sum(files[0] for files in where["rows"].values())
            result = where | summary(_rounds(options, spark, folder), loaded)
    except LakejoinError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    _keep(result, options.json)
    _show(result)
    return 0


def _needed(workload: Path, batches: int) -> Iterator[Path]:
    for batch in range(batches + 1):
        yield answer_file(workload, batch)
        yield from (change_file(workload, side, batch) for side in ("left", "right"))


@contextmanager
def _scratch(workload: Path, *, keep: bool) -> Iterator[Path]:
    """A folder beside the workload, on the same disk; removed at the end unless it is to be kept."""
    folder = Path(tempfile.mkdtemp(prefix="bench-", dir=workload.absolute().parent))
    try:
        yield folder
    finally:
        if keep:
            say(f"kept: {folder}")
        else:
            shutil.rmtree(folder)


@contextmanager
def _session(options: argparse.Namespace, folder: Path) -> Iterator[SparkSession]:
    conf = {"spark.driver.memory": options.driver_memory, "spark.local.dir": str(folder / "spark")}
    spark = start_session(options.master, conf)
    try:
        yield spark
    finally:
        spark.stop()


def _surroundings(options: argparse.Namespace, spark: SparkSession) -> dict[str, Any]:
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": machine(),
        "versions": versions(spark),
        "master": options.master,
        "driver_memory": options.driver_memory,
        "workload": options.workload.absolute().name,
        "rows": rows(options.workload, options.batches),
        "warmed_up": options.warm_up,
    }


def _rounds(options: argparse.Namespace, spark: SparkSession, folder: Path) -> list[Round]:
    """Warm up, race, and say how it goes."""
    if options.warm_up:
        say("warming up")
        warm_up(Track(spark, folder / "warm-up", options.driver_memory), options.workload, options.contenders)
    track = Track(spark, folder / "race", options.driver_memory)
    rounds = []
    for turn in run_race(track, options.workload, options.contenders, options.batches):
        rounds.append(turn)
        what = f"batch {turn.batch}" if turn.batch else "first load"
        say(f"{what}: {turn.contender} {turn.cost.wall_seconds:.2f} s, as expected")
        if options.explain and turn.contender == "ours" and turn.batch == options.batches:
            options.explain.write_text(explanation(spark, turn.started, turn.cost.wall_seconds))
    return rounds


def _keep(result: Mapping[str, Any], file: Path | None) -> None:
    """Write what was measured, by default under its date and commit among the other results."""
    date = datetime.fromisoformat(result["date"])
    path = file or RESULTS / f"{date:%Y-%m-%dT%H%M%S}-{result['commit']}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n")
    say(f"written: {path}")


def _show(result: Mapping[str, Any]) -> None:
    loads, medians = result["first_load"], result["medians"]
    print_table("First load", HEADER, [table_row(name, load) for name, load in loads.items()])
    print_table("A batch (medians)", HEADER, [table_row(name, median) for name, median in medians.items()])
    for rival in ("spark", "duckdb"):
        ratio = result[f"ratio_to_{rival}_recompute"]
        if ratio is not None:
            say(f"ratio to {rival}'s recompute: {ratio} (above 1: ours is faster)")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="run.py", description="Race Lakejoin against recomputing the join.")
    parser.add_argument("--workload", type=Path, required=True, metavar="DIR", help="made by workload.py")
    parser.add_argument(
        "--batches", type=_count, required=True, metavar="N", help="so many after the first load"
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="what was measured (default: in bench/results)"
    )
    parser.add_argument(
        "--explain", type=Path, metavar="FILE", help="plan of the costliest query of our last batch"
    )
    parser.add_argument("--contenders", type=_names, default=NAMES, metavar="NAMES", help=",".join(NAMES))
    parser.add_argument("--master", default="local[2]", help="where Spark runs (default: local[2])")
    parser.add_argument(
        "--driver-memory", default="4g", metavar="SIZE", help="Spark's and DuckDB's (default: 4g)"
    )
    parser.add_argument("--keep", action="store_true", help="leave the lake where it was made")
    parser.add_argument(
        "--no-warm-up", dest="warm_up", action="store_false", help="do not run a few small batches first"
    )
    return parser


def _count(argument: str) -> int:
    if argument.isdecimal() and int(argument) > 0:
        return int(argument)
    raise argparse.ArgumentTypeError(f"{argument!r}: expected a number of batches, at least 1")


def _names(argument: str) -> tuple[str, ...]:
    names = tuple(argument.split(","))
    if len(set(names)) == len(names) and set(names) <= set(NAMES):
        return names
    raise argparse.ArgumentTypeError(f"{argument!r}: expected some of {','.join(NAMES)}, each once")


if __name__ == "__main__":
    sys.exit(main())
