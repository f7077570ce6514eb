"""Plots of the kept results: batch cost against table size, against batch size, and stage by stage."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from bench.targets.results import Result, wall
from bench.targets.targets import CHANGES

_NAMES = {"ours": "Lakejoin", "spark": "Spark's recompute", "duckdb": "DuckDB's recompute"}
_COLOURS = {"ours": "#1f77b4", "spark": "#d62728", "duckdb": "#7f7f7f"}
_SIZES = ("#1f77b4", "#2ca02c", "#9467bd", "#8c564b")


def draw(results: Sequence[Result], folder: Path) -> list[Path]:
    """Draw what the results allow into files of a folder; returns them. The newest race of a kind counts."""
    races = [result for result in results if _is_shown(result)]
    folder.mkdir(parents=True, exist_ok=True)
    usual = _newest((race for race in races if race.usual_changes() == CHANGES), lambda race: race.left_rows)
    plots = (
        ("batch-cost-by-table-size.svg", _by_table_size, usual),
        ("batch-cost-by-batch-size.svg", _by_batch_size, races),
        ("batch-cost-by-stage.svg", _by_stage, usual),
    )
    return [_save(plot, found, folder / name) for name, plot, found in plots if found]


def _is_shown(result: Result) -> bool:
    return result.is_race and result.has("ours") and result.is_plain


def _save(plot: Callable[[Axes, Sequence[Result]], None], results: Sequence[Result], file: Path) -> Path:
    # the salt: the same results make the same file
    with mpl.rc_context(
        {
            "svg.hashsalt": "lakejoin",
            "svg.fonttype": "none",
            "font.size": 9,
            "axes.grid": True,
            "grid.alpha": 0.3,
        }
    ):
        figure = Figure(figsize=(7, 4), layout="constrained")
        plot(figure.add_subplot(), results)
        figure.savefig(file, metadata={"Date": None})
    return file


def _newest(races: Iterable[Result], kind: Callable[[Result], object]) -> list[Result]:
    """Of several races of a kind the newest, by size of table and batch."""
    found: dict[object, Result] = {}
    for race in races:  # the newest come first
        found.setdefault(kind(race), race)
    return sorted(found.values(), key=lambda race: (race.left_rows, race.usual_changes()))


def _by_table_size(axes: Axes, races: Sequence[Result]) -> None:
    for name, label in _NAMES.items():
        points = [(race.left_rows, wall(race.turns(name))) for race in races if race.has(name)]
        if points:
            axes.plot(*zip(*points, strict=True), marker="o", label=label, color=_COLOURS[name])
    axes.set_title(f"A batch of {CHANGES[0]:,} left and {CHANGES[1]:,} right changes")
    # as far apart as they are: a batch whose cost follows its changes is a level line
    axes.set_xlim(left=0)
    axes.set_xticks([race.left_rows for race in races], [_short(race.left_rows) for race in races])
    _label(axes, "rows of the left table")


def _by_batch_size(axes: Axes, races: Sequence[Result]) -> None:
    newest = _newest(races, lambda race: (race.left_rows, race.usual_changes()))
    for colour, rows in zip(_SIZES, sorted({race.left_rows for race in newest}), strict=False):
        for name, style in (("ours", "-"), ("spark", "--")):
            points = [
                (sum(race.usual_changes()), wall(race.turns(name)))
                for race in newest
                if race.left_rows == rows and race.has(name)
            ]
            if points:
                label = f"{_NAMES[name]}, {_short(rows)} rows"
                axes.plot(*zip(*points, strict=True), style, marker="o", label=label, color=colour)
    axes.set_title("A batch by the number of its changes")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _short(value)))
    _label(axes, "changes in a batch, left and right")


def _by_stage(axes: Axes, races: Sequence[Result]) -> None:
    stages: Mapping[str, None] = dict.fromkeys(
        stage for race in races for stage in race.found["median_stage_seconds"]["ours"]
    )
    height = 0.8 / len(races)
    for place, (race, colour) in enumerate(zip(races, _SIZES, strict=False)):
        seconds = race.found["median_stage_seconds"]["ours"]
        at = [line + place * height for line in range(len(stages))]
        axes.barh(
            at, [seconds.get(stage, 0) for stage in stages], height,
            label=f"{_short(race.left_rows)} rows", color=colour,
        )  # fmt: skip
    axes.set_yticks([line + 0.4 - height / 2 for line in range(len(stages))], list(stages))
    axes.invert_yaxis()
    axes.set_xlabel("seconds, medians; stages overlap")
    axes.set_title(f"Stages of a batch of {CHANGES[0]:,} left and {CHANGES[1]:,} right changes")
    axes.legend()


def _label(axes: Axes, across: str) -> None:
    axes.set_xlabel(across)
    axes.set_ylabel("seconds, medians")
    axes.set_ylim(bottom=0)
    axes.legend()


def _short(value: float) -> str:
    """A number as people say it: 1.5 M, 100 k."""
    for unit, name in ((1e6, " M"), (1e3, " k")):
        if value >= unit:
            return f"{value / unit:g}{name}"
    return f"{value:g}"
