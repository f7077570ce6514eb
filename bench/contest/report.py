"""What is kept of a race: every turn, medians, and how many times faster than a recompute."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from statistics import median
from typing import Any

from bench.contest.cost import Cost
from bench.contest.race import Round

_MEBIBYTE = 1024 * 1024

RIVALS = ("spark", "duckdb", "merge")
"""Who ours is held against."""

Figures = Mapping[str, float]
"""What something cost, or its medians, by the names of `Cost`."""


def summary(rounds: Sequence[Round], loaded: int) -> dict[str, Any]:
    """Return a race as JSON takes it; batch 0, the first load of so many rows, is apart and in no median."""
    names = list(dict.fromkeys(turn.contender for turn in rounds))
    batches = {name: [t for t in rounds if t.contender == name and t.batch > 0] for name in names}
    loads = {turn.contender: turn for turn in rounds if turn.batch == 0}
    found = {name: medians([turn.cost for turn in turns]) for name, turns in batches.items()}
    load_costs = {name: asdict(turn.cost) for name, turn in loads.items()}
    return {
        **{ratio_name(rival): ratio(found, rival) for rival in RIVALS},
        "cpu_ratio_to_spark_recompute": ratio(found, "spark", "cpu_seconds"),
        "first_load_ratio_to_spark": ratio(load_costs, "spark"),
        "first_load_rows_per_second": {
            name: round(loaded / turn.cost.wall_seconds) for name, turn in loads.items()
        },
        "medians": found,
        "median_stage_seconds": {name: stage_medians(turns) for name, turns in batches.items()},
        "first_load": {name: _turn(turn) for name, turn in loads.items()},
        "batches": {name: [_turn(turn) for turn in turns] for name, turns in batches.items()},
    }


def ratio_name(rival: str) -> str:
    """How the result names how many times faster than a rival ours is; two rivals recompute the join."""
    return f"ratio_to_{rival}" if rival == "merge" else f"ratio_to_{rival}_recompute"


def medians(costs: Sequence[Cost]) -> Figures:
    """Return the median of each figure over several costs."""
    names = [field.name for field in fields(Cost)]
    return {name: median(getattr(cost, name) for cost in costs) for name in names}


def stage_medians(turns: Sequence[Round]) -> dict[str, float]:
    """Return the median seconds of each stage over the batches that had it."""
    seconds: dict[str, list[float]] = {}
    for turn in turns:
        for stage, value in turn.work.stages.items():
            seconds.setdefault(stage, []).append(value)
    return {stage: round(median(values), 3) for stage, values in seconds.items()}


def ratio(costs: Mapping[str, Figures], rival: str, figure: str = "wall_seconds") -> float | None:
    """Return how many times less of a figure ours costs than a rival; None where one of them did not take part."""
    if "ours" not in costs or rival not in costs:
        return None
    return round(costs[rival][figure] / costs["ours"][figure], 3)


HEADER = (
    "",
    "wall s",
    "CPU s",
    "others' CPU s",
    "peak MiB",
    "read MiB",
    "written MiB",
    "files",
    "jobs",
    "commits",
)


def table_row(name: str, values: Figures) -> tuple[str | float | int, ...]:
    """Return the line of a table with `HEADER`: medians, or one cost, in units for people."""
    return (
        name,
        f"{values['wall_seconds']:.2f}",
        f"{values['cpu_seconds']:.2f}",
        f"{values['others_cpu_seconds']:.2f}",
        round(values["peak_memory_bytes"] / _MEBIBYTE),
        round(values["read_bytes"] / _MEBIBYTE, 1),
        round(values["written_bytes"] / _MEBIBYTE, 1),
        round(values["files_written"]),
        round(values["spark_jobs"]),
        round(values["delta_commits"]),
    )


def _turn(turn: Round) -> dict[str, Any]:
    return {
        "batch": turn.batch,
        "started": turn.started.isoformat(timespec="seconds"),
        **asdict(turn.cost),
        "stage_seconds": dict(turn.work.stages),
        "stage_bytes": {stage: dict(spent) for stage, spent in turn.stage_bytes.items()},
        "counts": {name: dict(counts) for name, counts in turn.work.counts.items()},
        "maintenance": asdict(turn.maintenance),
        "stored_bytes": dict(turn.stored),
    }
