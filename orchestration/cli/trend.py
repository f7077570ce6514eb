"""Prints the figures of a pipeline's last batches, one beneath the other."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lakejoin.orchestration.cli.terminal import Row, print_table, say_json

if TYPE_CHECKING:
    from lakejoin.storage.lake.plan import Published

_HEADER = [
    "batch",
    "kind",
    "dates",
    "planned at (UTC)",
    "records",
    "applied",
    "quarantined",
    "emissions",
    "stage seconds",
]


def print_trend(published: Sequence["Published"], most: int, form: str) -> None:
    """Print the last `most` batches, the newest last; as `json` a list of objects."""
    points = [_point(batch) for batch in published[-most:]]
    if form == "json":
        say_json(points)
        return
    rows: list[Row] = [
        (
            f"{point['batch']}",
            point["kind"],
            " to ".join(dict.fromkeys([*point["dates"][:1], *point["dates"][-1:]])),
            point["planned_at"][:19].replace("T", " "),
            *[point[name] for name in ("records", "applied", "quarantined", "emissions")],
            point["stage_seconds"],
        )
        for point in points
    ]
    print_table(f"The last {len(rows)} of {len(published)} batches", _HEADER, rows)


def _point(batch: "Published") -> dict[str, Any]:
    """What a batch did, of all its tables and joins together."""

    def sums(of: Any, name: str) -> int:
        return sum(counts.get(name, 0) for counts in of.values())

    return {
        "batch": batch.batch,
        "kind": batch.kind,
        "dates": [day.isoformat() for day in batch.dates],
        "planned_at": batch.planned_at.isoformat(),
        **{name: sums(batch.tables, name) for name in ("records", "applied", "quarantined")},
        "emissions": sums(batch.joins, "emissions"),
        "stage_seconds": round(sum(batch.seconds.values()), 3),
    }
