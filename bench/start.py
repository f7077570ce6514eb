"""Holds a run that finds nothing to do against the start of a Spark session: `start.py --lake DIR --json FILE`.

DIR is what `run.py --keep-lake` made. The two take turns. Exit code 1 where one of them fails, 2 for wrong usage.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script, from wherever

from bench.contest.arguments import add_result, add_session, count, kept_lake
from bench.contest.kept import kept_file, read, write_result
from bench.contest.ours import PIPELINE_FILE
from bench.contest.start import Start, empty_run, spark_session
from bench.contest.surroundings import heading
from lakejoin.orchestration.cli.terminal import say
from lakejoin.storage.errors import LakejoinError


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure both, keep and print what was found; return the exit code."""
    options = _parser().parse_args(arguments)
    where = {"kind": "start"} | heading(options) | {"lake": read(kept_file(options.lake))}
    try:
        found = _measured(options)
    except LakejoinError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    write_result(where | found, options.json)
    say(
        f"medians: an empty run {found['medians']['empty_run']} s, "
        f"{'with' if found['java_in_empty_run'] else 'without'} a JVM; "
        f"the start of a Spark session {found['medians']['spark_session']} s"
    )
    return 0


def _measured(options: argparse.Namespace) -> dict[str, Any]:
    """Take turns: the first pair, which finds nothing in the page cache, is left out."""
    runs: list[Start] = []
    sessions: list[Start] = []
    for turn in range(options.times + 1):
        run = empty_run(options.lake / PIPELINE_FILE)
        session = spark_session(options.master, options.driver_memory)
        say(f"{turn or 'first'}: empty run {run.wall_seconds} s, Spark session {session.wall_seconds} s")
        if turn:
            runs.append(run)
            sessions.append(session)
    return {
        "medians": {
            "empty_run": round(median(run.wall_seconds for run in runs), 3),
            "spark_session": round(median(session.wall_seconds for session in sessions), 3),
        },
        "java_in_empty_run": any(run.java for run in runs),
        "java_in_spark_session": all(session.java for session in sessions),
        "empty_runs": [asdict(run) for run in runs],
        "spark_sessions": [asdict(session) for session in sessions],
    }


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="start.py", description="Hold an empty run against the start of a Spark session."
    )
    parser.add_argument(
        "--lake", type=kept_lake, required=True, metavar="DIR", help="made by run.py --keep-lake"
    )
    parser.add_argument("--times", type=count, default=7, metavar="N", help="turns of each (default: 7)")
    add_result(parser)
    add_session(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
