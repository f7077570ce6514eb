"""Draws docs/images/time.svg from the demo's lake: `python examples/flights/draw_time.py [LAKE]`."""

import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pyarrow.dataset as ds
from deltalake import DeltaTable
from matplotlib.axes import Axes
from matplotlib.figure import Figure

LAKE = Path(__file__).parent / "lake"
IMAGE = Path(__file__).parents[2] / "docs" / "images" / "time.svg"
DAY = 2
_KINDS = (
    ("released", "#1f77b4", "released in this batch"),
    ("waits", "#ff7f0e", "waits in the buffer"),
    ("late", "#d62728", "late: quarantined"),
)
GRACE, RETENTION = timedelta(hours=2), timedelta(days=10)


def main(lake: Path) -> None:
    """Draw both panels into the file."""
    style = {
        "svg.hashsalt": "lakejoin",
        "svg.fonttype": "none",
        "font.size": 9,
        "axes.grid": True,
        "grid.alpha": 0.3,
    }
    with mpl.rc_context(style):
        figure = Figure(figsize=(8, 7), layout="constrained")
        upper, lower = figure.subplots(2, 1, height_ratios=(2, 1))
        _draw_day(
            upper, _rows(lake / "streams/departures/records", ["_lj_verdict", "_lj_time", "_lj_position"])
        )
        _draw_batches(lower, _rows(lake / "_published", ["batch", "clocks"]))
        figure.savefig(IMAGE, metadata={"Date": None})
    sys.stdout.write(f"{IMAGE}\n")


def _rows(table: Path, columns: list[str]) -> list[dict[str, Any]]:
    found = DeltaTable(str(table)).to_pyarrow_dataset()
    day = ds.field("_lj_batch") == DAY if "_lj_batch" in found.schema.names else None
    rows: list[dict[str, Any]] = found.to_table(columns=columns, filter=day).to_pylist(
        maps_as_pydicts="strict"
    )
    return rows


def _draw_day(axes: Axes, rows: list[dict[str, Any]]) -> None:
    """The departures of a day in the order in which they came, with the clock that decides about each."""
    came = sorted(
        (row for row in rows if row["_lj_verdict"] in {"applied", "late"}),
        key=lambda row: row["_lj_position"]["line"],
    )
    times = [row["_lj_time"] for row in came]
    clock: list[datetime] = []
    for time in times:
        clock.append(max(time, clock[-1]) if clock else time)
    end = clock[-1] - GRACE
    kinds = [
        "late" if row["_lj_verdict"] == "late" else "waits" if row["_lj_time"] > end else "released"
        for row in came
    ]
    for kind, colour, label in _KINDS:
        points = [(n, time) for n, (time, its) in enumerate(zip(times, kinds, strict=True)) if its == kind]
        axes.plot(
            *zip(*points, strict=True), ".", color=colour, markersize=4, label=f"{label} ({len(points)})"
        )
    axes.plot(clock, color="black", linewidth=1, label="stream time")
    axes.plot(
        [time - GRACE for time in clock],
        color="black",
        linewidth=1,
        linestyle=":",
        label="less grace (2 hours)",
    )
    axes.set(
        title=f"Batch {DAY}: departures in the order they came",
        xlabel="record",
        ylabel="event time (scheduled departure)",
    )
    axes.legend(fontsize=8)


def _draw_batches(axes: Axes, rows: list[dict[str, Any]]) -> None:
    """After each batch: stream time, and how far back the weather's history answers."""
    rows = sorted(rows, key=lambda row: row["batch"])
    batches = [row["batch"] for row in rows]
    weather = [row["clocks"]["tables/weather"] for row in rows]
    stream = [row["clocks"]["joins/departures_with_weather"] for row in rows]
    axes.fill_between(
        batches,
        [time - RETENTION for time in weather],
        weather,
        alpha=0.2,
        label="weather that as-of reads reach",
    )
    axes.fill_between(
        batches, [time - GRACE for time in stream], stream, color="#ff7f0e", alpha=0.6, label="buffer"
    )
    axes.plot(batches, stream, color="black", marker=".", linewidth=1, label="stream time")
    axes.set(title="The week: clocks after each batch", xlabel="batch", ylabel="event time")
    axes.legend(fontsize=8, loc="lower right")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else LAKE)
