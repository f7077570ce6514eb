"""Results of the benchmark as they are kept, with what a test says of them and nothing else."""

from collections.abc import Mapping, Sequence
from typing import Any

from bench.targets.results import Result

MEBIBYTE = 1024 * 1024


def turn(batch: int, wall: float, **others: Any) -> dict[str, Any]:
    """Return a turn as it is kept, with nobody else at work unless it is said."""
    usual = {"others_cpu_seconds": 0, "peak_python_bytes": 0, "maintenance": {"wall_seconds": 0.5}}
    return {"batch": batch, "wall_seconds": wall, **usual, **others}


def race(
    scale: float,
    walls: Mapping[str, Sequence[float]],
    *,
    changes: Sequence[tuple[int, int]] | tuple[int, int] = (10_000, 100),
    loads: Mapping[str, float] | None = None,
    day: int = 1,
    **others: Any,
) -> Result:
    """Return a race at a scale: seconds of each contender's batches, and of its first load."""
    batches = len(next(iter(walls.values())))
    listed = [changes] * batches if isinstance(changes[0], int) else list(changes)
    return Result(
        f"{day}.json",
        {
            "date": f"2026-01-{day:02}T00:00:00+00:00",
            "commit": f"commit{day}",
            "machine": {"cores": 2},
            "driver_memory": "4g",
            "rivals_every": 1,
            "rows": {
                "left": [round(1_500_000 * scale), *[left for left, _ in listed]],
                "right": [round(150_000 * scale), *[right for _, right in listed]],
            },
            "batches": {
                name: [turn(batch, wall) for batch, wall in enumerate(found, start=1)]
                for name, found in walls.items()
            },
            "first_load": {name: turn(0, wall) for name, wall in (loads or {}).items()},
            "median_stage_seconds": {"ours": {"joined/j": 1.0}},
            **others,
        },
    )
