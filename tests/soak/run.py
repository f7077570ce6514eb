"""Random histories of lakes, one after the other: `run.py [--count N] [--minutes M] [--seed S] [--history SEED]`.

Prints a line for each history and goes on after one that fails; ends with totals and the seeds of those that failed.
Exit code 1 if any failed, 2 for wrong usage.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(_ROOT), str(_ROOT / "tests")]  # run as a script, from wherever

from pyspark.sql import SparkSession  # noqa: E402  (the path above makes the others importable)

from faults.lakes import forget_logs  # noqa: E402
from lakejoin.storage.spark.session import start_session  # noqa: E402
from soak.histories import history  # noqa: E402
from soak.trial import SoakTrial  # noqa: E402

_SMALL_TABLES = {
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "2",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the histories that the arguments ask for; return the exit code."""
    options = _parser().parse_args(arguments)
    first = options.seed if options.history is None else options.history
    seeds = range(first, first + (options.count if options.history is None else 1))
    spark = start_session("local[2]", _SMALL_TABLES)
    end = time.monotonic() + 60 * options.minutes
    totals: Counter[str] = Counter()
    failed: list[int] = []
    for done, seed in enumerate(seeds):
        if done and time.monotonic() >= end:
            break
        happened = run_one(seed, spark)
        totals.update(happened or {})
        totals["history"] += 1
        if happened is None:
            failed.append(seed)
    _say(f"{totals['history'] - len(failed)} of {totals['history']} histories passed, seeds from {first}")
    _say(_told(totals))
    if failed:
        _say("failed: " + "".join(f"\n  make soak HISTORY={seed}" for seed in failed))
    return 1 if failed else 0


def run_one(seed: int, spark: SparkSession) -> Counter[str] | None:
    """Run the history of a seed and print its line; return what happened how often, None if it failed."""
    begun, happened = time.monotonic(), None
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        try:
            happened = SoakTrial(history(seed), Path(folder), spark).run()
        except AssertionError as error:
            _say(f"seed {seed}: FAILED\n{error}")
    if happened is not None:
        _say(f"seed {seed}: {time.monotonic() - begun:.0f} s, {_told(happened)}")
    forget_logs(spark)
    return happened


def _told(happened: Counter[str]) -> str:
    return ", ".join(f"{count} x {what}" for what, count in sorted(happened.items()) if count)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="run.py", description="Run random histories of lakes.")
    parser.add_argument("--count", type=int, default=200, metavar="N", help="at most so many (default: 200)")
    parser.add_argument(
        "--minutes", type=float, default=240, metavar="M", help="begin none after M minutes (default: 240)"
    )
    parser.add_argument("--seed", type=int, default=1, metavar="S", help="seed of the first one (default: 1)")
    parser.add_argument("--history", type=int, metavar="SEED", help="only the history of this seed")
    return parser


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
