"""Holds Lakejoin against Kafka Streams: `run.py CASES_DIR [--only GLOB] [--batches …] [--steps N] [--stars]`.

Prints a line with the first difference for each case that fails, the skipped cases with their reason and,
last, `N passed, N failed`. A case that raises, or whose file cannot be read, fails alone: its line says what was
raised, and the traceback goes to stderr. Exit code 1 if any failed, 2 for wrong usage.
"""

import argparse
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

_ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(_ROOT), str(_ROOT / "tests")]  # run as a script, from wherever

from conformance.case import (  # noqa: E402  (the path above makes it importable)
    STORES,
    Batches,
    Case,
    case_paths,
    expected_emissions,
    expected_table,
    first_difference,
    read_case,
    skip_reason,
    table_difference,
)
from conformance.isolation import run_apart, what_was_raised  # noqa: E402
from conformance.pipeline import Answers, run_cases  # noqa: E402
from conformance.places import refusal_difference  # noqa: E402
from conformance.replay import run_replays  # noqa: E402
from conformance.stores import run_stores  # noqa: E402
from conformance.timed import expected_outputs, run_timed  # noqa: E402
from lakejoin.storage.spark.session import start_session  # noqa: E402

_CUTS = {"per-event": Batches("per-event"), "one": Batches("one")}
_SHORT = 15
"""Most events of a case that is written by hand."""
_SMALL_TABLES = {
    # Half the CPU of a cold start; it caps the peak speed that small tables never reach.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m",
    "spark.sql.shuffle.partitions": "2",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases that the arguments name; return the exit code."""
    options = _parser().parse_args(arguments)
    batches = replace(options.batches, steps=options.steps)
    try:
        paths = case_paths(options.cases, options.only)
    except FileNotFoundError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    cases: list[Case] = []
    skipped: dict[str, str] = {}
    failures: dict[str, str] = {}
    for path in paths:
        try:
            case = read_case(path)
            reason = skip_reason(case, batches)
        except Exception as error:  # noqa: BLE001 - whatever is in the file, the others are run
            failures[path.stem] = what_was_raised(error)
            continue
        if reason is None:
            cases.append(case)
        else:
            skipped[case.name] = reason
    failures |= run(cases, batches, stars=options.stars)
    for name, difference in sorted(failures.items()):
        _say(f"FAIL {name}: {difference}")
    _say_skipped(skipped)
    _say(f"{len(paths) - len(skipped) - len(failures)} passed, {len(failures)} failed")
    return 1 if failures else 0


def run(cases: Sequence[Case], batches: Batches, *, stars: bool = False) -> dict[str, str]:
    """Run the cases and return the first difference of each that failed, by its name."""
    failures = {}
    for case in cases:
        if case.is_refused:
            failures |= run_apart([case], _refusals)
    cases = [case for case in cases if not case.is_refused]
    if not cases:
        return failures
    spark = start_session("local[2]", _SMALL_TABLES)
    for case in cases:
        if case.topology in STORES:
            failures |= run_apart([case], partial(_run_stores, batches=batches, spark=spark))
    cases = [case for case in cases if case.topology not in STORES]
    failures |= run_apart([case for case in cases if case.replays], partial(run_replays, spark=spark))
    timed = [case for case in cases if case.is_timed and not case.replays]
    untimed = [case for case in cases if not case.is_timed and not case.replays]
    # tables of their own cost a batch even where they have no input, so the few long cases run apart
    short = [case for case in timed if len(case.events) <= _SHORT]
    long = [case for case in timed if len(case.events) > _SHORT]
    for of_kind, run_of_kind in (
        (untimed, partial(run_cases, stars=stars)),
        (short, run_timed),
        (long, run_timed),
    ):
        failures |= run_apart(of_kind, partial(_run_pipeline, run_of_kind, batches=batches, spark=spark))
    return failures


def _run_stores(cases: Sequence[Case], *, batches: Batches, spark: SparkSession) -> dict[str, str]:
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        return run_stores(cases, batches, Path(folder), spark)


def _run_pipeline(
    run_of_kind: Callable[..., dict[str, Answers]],
    cases: Sequence[Case],
    *,
    batches: Batches,
    spark: SparkSession,
) -> dict[str, str]:
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        answers = run_of_kind(cases, batches, Path(folder), spark, _show_progress)
    return differences(cases, answers, batches)


def _refusals(cases: Iterable[Case]) -> dict[str, str]:
    failures = {}
    for case in cases:
        with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
            if difference := refusal_difference(case, Path(folder)):
                failures[case.name] = difference
    return failures


def differences(cases: Iterable[Case], answers: Mapping[str, Answers], batches: Batches) -> dict[str, str]:
    """Return the first difference of each case whose answers are not the expected ones, by its name."""
    failures = {}
    for case in cases:
        end = min(case.end, len(batches.cut(case)))
        difference = None
        if case.is_stream:
            difference = first_difference(expected_outputs(case, end), answers[case.name].emissions[:end])
        elif batches.kind == "per-event" and not case.is_table:
            difference = first_difference(expected_emissions(case, end), answers[case.name].emissions[:end])
        if difference is None and not case.is_stream and end == len(batches.cut(case)):
            difference = table_difference(expected_table(case, end), answers[case.name].table)
        if difference is not None:
            failures[case.name] = difference
    return failures


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="run.py", description="Compare Lakejoin with Kafka Streams.")
    parser.add_argument("cases", type=Path, metavar="CASES_DIR", help="folder of case files")
    parser.add_argument("--only", default="*", metavar="GLOB", help="names of the cases to run")
    parser.add_argument(
        "--batches", type=_batches, default=Batches("per-event"), metavar="per-event|one|random:SEED",
        help="how each case is cut into batches (default: per-event)",
    )  # fmt: skip
    parser.add_argument(
        "--steps",
        type=_steps,
        default=40,
        metavar="N",
        help="events after which per-event ends (default: 40)",
    )
    parser.add_argument(
        "--stars", action="store_true", help="each join of tables as a star with one right side"
    )
    return parser


def _batches(argument: str) -> Batches:
    if argument in _CUTS:
        return _CUTS[argument]
    kind, _, seed = argument.partition(":")
    if kind == "random" and seed.isdecimal():
        return Batches("random", int(seed))
    raise argparse.ArgumentTypeError(f"{argument!r}: expected per-event, one or random:SEED with a number")


def _steps(argument: str) -> int:
    if argument.isdecimal() and int(argument) > 0:
        return int(argument)
    raise argparse.ArgumentTypeError(f"{argument!r}: expected a number of events, at least 1")


def _say_skipped(skipped: Mapping[str, str]) -> None:
    names: defaultdict[str, list[str]] = defaultdict(list)
    for name, reason in skipped.items():
        names[reason].append(name)
    for reason, of_reason in sorted(names.items()):
        _say(f"SKIP {len(of_reason)} ({reason}): {' '.join(sorted(of_reason))}")
    if skipped:
        _say(f"{len(skipped)} skipped")


def _show_progress(done: int, of: int) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\rbatch {done} of {of}" + ("\n" if done == of else ""))
        sys.stderr.flush()


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
