"""Where the time of a batch and of a first load goes, stage by stage: the first measurement beside the newest."""

from collections.abc import Mapping, Sequence
from typing import Any

from bench.targets.results import Result
from bench.targets.table import Cells, markdown
from bench.targets.targets import CHANGES

_MEBIBYTE = 1024 * 1024
_TOTALS: Mapping[str, tuple[str, float]] = {
    "seconds, all in all": ("wall_seconds", 1),
    "CPU seconds": ("cpu_seconds", 1),
    "MiB read": ("read_bytes", _MEBIBYTE),
    "MiB written": ("written_bytes", _MEBIBYTE),
    "files written": ("files_written", 1),
    "Spark jobs": ("spark_jobs", 1),
}
_Work = tuple[Mapping[str, Any], Mapping[str, float]]
"""What a batch or a load took, and the seconds of its stages."""


def profile(results: Sequence[Result]) -> str:
    """Return a table of Markdown: a usual batch and a first load of the smallest tables, then and now.

    `results`: the newest first. Empty where no two such races are kept.
    """
    races = [race for race in results if race.is_race and race.alternates and race.has("ours")]
    races = [race for race in races if race.usual_changes() == CHANGES and race.load("ours")]
    if not races:
        return ""
    smallest = min(race.left_rows for race in races)
    of_size = [race for race in races if race.left_rows == smallest]
    both = of_size[-1], of_size[0]
    columns = [_batch(race) for race in both] + [_load(race) for race in both]
    header = (
        "",
        *[f"{what}, {race.date:%Y-%m-%d}, {race.commit}" for what in ("batch", "load") for race in both],
    )
    stages = dict.fromkeys(stage for _, seconds in columns for stage in seconds)
    lines = [
        _line(name, [work[figure] / unit for work, _ in columns]) for name, (figure, unit) in _TOTALS.items()
    ]
    lines += [_line(f"`{stage}`", [seconds.get(stage) for _, seconds in columns]) for stage in stages]
    return markdown(lines, header)


def _batch(race: Result) -> _Work:
    return race.found["medians"]["ours"], race.found["median_stage_seconds"]["ours"]


def _load(race: Result) -> _Work:
    load = race.load("ours") or {}
    return load, load["stage_seconds"]


def _line(name: str, found: Sequence[float | None]) -> Cells:
    return (name, *["" if number is None else f"{number:,.1f}" for number in found])
