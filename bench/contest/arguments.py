"""The command line of a race."""

import argparse
from pathlib import Path

from bench.contest.entry import NAMES, RECOMPUTING
from bench.contest.race import Course


def parser() -> argparse.ArgumentParser:
    """Return what reads the arguments of `run.py`; README.md has them in a table."""
    found = argparse.ArgumentParser(prog="run.py", description="Race Lakejoin against recomputing the join.")
    found.add_argument("--workload", type=Path, required=True, metavar="DIR", help="made by workload.py")
    found.add_argument(
        "--batches", type=count, required=True, metavar="N", help="so many after the first load"
    )
    add_result(found)
    found.add_argument(
        "--explain", type=Path, metavar="FILE", help="plan of the costliest query of our last batch"
    )
    found.add_argument(
        "--contenders", type=_names, default=RECOMPUTING, metavar="NAMES",
        help=f"some of {','.join(NAMES)} (default: {','.join(RECOMPUTING)})",
    )  # fmt: skip
    add_session(found)
    found.add_argument(
        "--stage-bytes", action="store_true", help="ask Spark what each of our stages reads and writes"
    )
    found.add_argument("--keep", action="store_true", help="leave lake and tables where they were made")
    found.add_argument(
        "--no-warm-up", dest="warm_up", action="store_false", help="do not run a few small batches first"
    )
    _add_course(found.add_argument_group("what is run, and when"))
    return found


def add_session(found: argparse.ArgumentParser) -> None:
    """Add where Spark runs, and with how much memory."""
    found.add_argument("--master", default="local[2]", help="where Spark runs (default: local[2])")
    found.add_argument(
        "--driver-memory", default="4g", metavar="SIZE", help="Spark's and DuckDB's (default: 4g)"
    )


def add_result(found: argparse.ArgumentParser) -> None:
    """Add where a result goes, and what `row.py` finds it again by."""
    found.add_argument(
        "--json", type=Path, metavar="FILE", help="what was measured (default: in bench/results)"
    )
    found.add_argument("--recipe", default="", help=argparse.SUPPRESS)


def _add_course(group: argparse._ArgumentGroup) -> None:  # the only name that argparse has for it
    load = group.add_mutually_exclusive_group()
    load.add_argument("--lake", type=kept_lake, metavar="DIR", help="begin with a first load that was kept")
    load.add_argument("--keep-lake", type=Path, metavar="DIR", help="keep ours here after the first load")
    group.add_argument(
        "--rivals-every", type=count, default=1, metavar="N",
        help="who recomputes takes part in every Nth batch and the last (default: in all)",
    )  # fmt: skip
    group.add_argument(
        "--maintain-every", type=count, default=0, metavar="N",
        help="do all maintenance after every Nth batch (default: only what is due)",
    )  # fmt: skip


def course(options: argparse.Namespace) -> Course:
    """Return what the arguments say about the race."""
    return Course(
        batches=options.batches,
        lake=options.lake,
        keep=options.keep_lake,
        rivals_every=options.rivals_every,
        maintain_every=options.maintain_every,
        by_stage=options.stage_bytes,
    )


def count(argument: str) -> int:
    """Read a number of batches. Raises `ArgumentTypeError`."""
    if argument.isdecimal() and int(argument) > 0:
        return int(argument)
    raise argparse.ArgumentTypeError(f"{argument!r}: expected a number of batches, at least 1")


def _names(argument: str) -> tuple[str, ...]:
    names = tuple(argument.split(","))
    if len(set(names)) != len(names) or not set(names) <= set(NAMES):
        raise argparse.ArgumentTypeError(f"{argument!r}: expected some of {','.join(NAMES)}, each once")
    if "merge" in names and "ours" not in names:
        raise argparse.ArgumentTypeError(
            f"{argument!r}: merge begins with the joined table of ours; name both"
        )
    return names


def kept_lake(argument: str) -> Path:
    """Read where a first load was kept. Raises `ArgumentTypeError`."""
    if (Path(argument) / "lake").is_dir():
        return Path(argument)
    raise argparse.ArgumentTypeError(f"{argument}: holds no `lake`; expected what --keep-lake made")
