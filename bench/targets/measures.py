"""The figure of each row of the table, from the newest results that serve it."""

from collections.abc import Callable, Mapping, Sequence
from statistics import median

from bench.targets.first_loads import first_load
from bench.targets.results import Result, Turn, upkeep, wall, warm
from bench.targets.sought import Measured, Sought, of_one, of_two
from bench.targets.targets import CHANGES, LEFT_ROWS, Target

_MEBIBYTE = 1024 * 1024


def measured(target: Target, results: Sequence[Result], size: float = 1) -> Measured | None:
    """Return the newest measurement of a target, or None where there is none."""
    return _MEASURES[target.row](target, Sought(results, size))


def _ratio(target: Target, sought: Sought, changes: tuple[int, int]) -> Measured | None:
    result = sought.race(target.scale, changes, "ours", "spark", fits=lambda found: found.is_plain)
    if result is None:
        return None
    ours, spark = wall(result.turns("ours")), wall(result.turns("spark"))
    note = (
        f"{ours:.2f} s against {spark:.2f} s, medians of {len(result.turns('ours'))}; "
        f"maintenance {upkeep(result.turns('ours')):.2f} s a batch besides"
    )
    if result.has("duckdb"):
        note += f"; DuckDB {wall(result.turns('duckdb')):.2f} s"
    return of_one(spark / ours, note, result, [*result.turns("ours"), *result.turns("spark")])


def _batch(target: Target, sought: Sought) -> Measured | None:
    return _ratio(target, sought, CHANGES)


def _large_batch(target: Target, sought: Sought) -> Measured | None:
    return _ratio(target, sought, (CHANGES[0] * 10, CHANGES[1] * 10))


def _growth(target: Target, sought: Sought) -> Measured | None:
    small, large = (
        sought.race(scale, CHANGES, "ours", fits=lambda found: found.is_plain) for scale in (1, target.scale)
    )
    if small is None or large is None:
        return None
    seconds = [wall(result.turns("ours")) for result in (large, small)]
    note = f"{seconds[0]:.2f} s against {seconds[1]:.2f} s"
    return of_two(seconds[0] / seconds[1], note, large, small)


def _smallest(target: Target, sought: Sought) -> Measured | None:
    result = sought.race(target.scale, (1, 0), "ours", "merge")
    if result is None:
        return None
    ours, merge = (warm(result.turns(name)) for name in ("ours", "merge"))
    note = f"{wall(ours):.2f} s against {wall(merge):.2f} s, medians of {len(ours)}"
    return of_one(wall(ours) / wall(merge), note, result, [*ours, *merge])


def _empty_run(target: Target, sought: Sought) -> Measured | None:  # noqa: ARG001 - as all measures
    result = next((found for found in sought.results if found.kind == "start"), None)
    if result is None:
        return None
    run, session = (result.found["medians"][name] for name in ("empty_run", "spark_session"))
    java = "a JVM was started" if result.found["java_in_empty_run"] else "no JVM seen among its processes"
    note = f"{run:.2f} s against {session:.2f} s, medians of {len(result.found['empty_runs'])}; {java}"
    # a run with a JVM has failed, however fast it was
    value = float("inf") if result.found["java_in_empty_run"] else run / session
    return of_one(value, note, result, [*result.found["empty_runs"], *result.found["spark_sessions"]])


def _hot(target: Target, sought: Sought) -> Measured | None:
    result = sought.race(target.scale, CHANGES, "ours", fits=lambda found: bool(_hot_turns(found)))
    if result is None:
        return None
    hot = _hot_turns(result)
    usual = [turn for turn in result.turns("ours") if turn not in hot]
    note = f"{wall(hot):.2f} s against {wall(usual):.2f} s, medians of {len(hot)} and {len(usual)} in turn"
    return of_one(wall(hot) / wall(usual), note, result, result.turns("ours"))


def _hot_turns(result: Result) -> Sequence[Turn]:
    """Turns at batches in which nothing but the one right row changed that many left rows point at."""
    if not result.hot_share:
        return ()
    return [turn for turn in result.turns("ours") if result.changes(turn["batch"]) == (0, 1)]


def _storage(target: Target, sought: Sought) -> Measured | None:
    result = sought.race(
        target.scale,
        CHANGES,
        "ours",
        "spark",
        fits=lambda found: not found.hot_share and _maintained(found) is not None,
    )
    found = _maintained(result) if result is not None else None
    if result is None or found is None:
        return None
    ours, least = (sum(turn["stored_bytes"].values()) for turn in found)
    note = (
        f"{ours / _MEBIBYTE:,.1f} MiB against {least / _MEBIBYTE:,.1f} MiB after {found[0]['batch']} batches"
    )
    return of_one(ours / least, note, result, found)


def _maintained(result: Result) -> tuple[Turn, Turn] | None:
    """The last turns of ours and Spark at a batch after which everything was maintained."""
    every = result.found.get("maintain_every") or 0
    if not every:
        return None
    return next((pair for pair in reversed(result.meetings()) if pair[0]["batch"] % every == 0), None)


def _endurance(target: Target, sought: Sought) -> Measured | None:
    """The longest race there is; the windows of 200 batches, in proportion."""
    races = [
        result
        for result in sought.results
        if result.is_race
        and result.has("ours", "spark")
        and result.found.get("maintain_every")
        and all(map(result.meetings, _windows(result)))
        and result.left_rows == round(LEFT_ROWS * target.scale * sought.size)
    ]
    result = max(races, key=lambda found: len(found.turns("ours")), default=None)
    if result is None:
        return None
    windows = _windows(result)
    early, late = (
        median(
            float(ours["wall_seconds"] / theirs["wall_seconds"]) for ours, theirs in result.meetings(window)
        )
        for window in windows
    )
    left, right = result.usual_changes()
    note = (
        f"batches {windows[1][0]}-{windows[1][-1]} take {late:.3f} of a recompute, batches "
        f"{windows[0][0]}-{windows[0][-1]} {early:.3f}; {left:,} and {right:,} changes a batch"
    )
    return of_one(late / early, note, result, [*result.turns("ours"), *result.turns("spark")])


def _windows(result: Result) -> tuple[range, range]:
    """The batches 10 to 30 and 180 to 200 of a race of 200, and their like of any other."""
    batches = len(result.turns("ours"))
    parts = ((0.05, 0.15), (0.9, 1))
    bounds = [[max(1, round(batches * part)) for part in window] for window in parts]
    early, late = (range(first, last + 1) for first, last in bounds)
    return early, late


def _memory(target: Target, sought: Sought) -> Measured | None:
    small, large = (
        sought.race(
            scale, CHANGES, "ours", fits=lambda found: found.is_plain and found.load("ours") is not None
        )
        for scale in (1, target.scale)
    )
    if small is None or large is None:
        return None
    peaks = [_python_peak(result) / _MEBIBYTE for result in (large, small)]
    note = f"{peaks[0]:,.0f} MiB against {peaks[1]:,.0f} MiB; heap {large.found['driver_memory']}"
    return of_two(peaks[0] - peaks[1], note, large, small)


def _python_peak(result: Result) -> int:
    return max(
        int(turn["peak_python_bytes"]) for turn in (result.load("ours"), *result.turns("ours")) if turn
    )


_MEASURES: Mapping[int, Callable[[Target, Sought], Measured | None]] = {
    1: _batch,
    2: _growth,
    3: _large_batch,
    4: _smallest,
    5: _empty_run,
    6: first_load,
    7: _hot,
    8: _storage,
    9: _endurance,
    10: _memory,
}
