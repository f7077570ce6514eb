"""Measures rows of the table of targets: `row.py 1 2 6`, `row.py 4 --size 0.01`; README.md has the table's runs.

Makes the workloads that are missing, runs what the rows need, each run in a process of its own, and prints the rows.
A run whose result was kept for this very commit is not repeated. Exit code 1 where a run fails, 2 for wrong usage.
"""

import argparse
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script, from wherever

from bench.contest.arguments import add_session, count
from bench.contest.kept import RESULTS, read
from bench.contest.surroundings import commit
from bench.targets.recipes import RECIPES, ROWS, Recipe, runs_of
from bench.targets.results import read_results
from bench.targets.sought import scaled
from bench.targets.table import HEADER, rows
from bench.workload import made_file
from lakejoin.orchestration.cli.terminal import print_table, say

_BENCH = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Places:
    """Where workloads and lakes are found or made, and where results go."""

    data: Path
    results: Path

    def workload(self, recipe: Recipe) -> Path:
        """The workload of a recipe; its batches are the same however many there are."""
        left, right = recipe.changes
        return self.data / f"scale-{_name(recipe)}-{left}+{right}"

    def lake(self, recipe: Recipe) -> Path:
        """The first load of a recipe, which does not depend on the batches."""
        return self.data / f"lake-{_name(recipe)}"

    def new_result(self, name: str) -> Path:
        """Where a run that begins now keeps its result."""
        return self.results / f"{datetime.now(UTC):%Y-%m-%dT%H%M%S}-{commit()}-{name}.json"

    def measured(self, name: str, recipe: Recipe) -> Path | None:
        """The newest result of a run with the commit as it is; a changed work tree has none to rely on."""
        made = commit()
        found = sorted(self.results.glob(f"*-{made}-{name}.json")) if made.isalnum() else []
        fitting = (file for file in reversed(found) if read(file).get("recipe") == recipe.text)
        return next(fitting, None)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the rows need and print them; return the exit code."""
    options = _parser().parse_args(arguments)
    places = Places(options.data.absolute(), options.results.absolute())
    wanted = list(ROWS) if "all" in options.rows else options.rows
    try:
        for name in runs_of(wanted):
            _run(name, _sized(RECIPES[name], options), places, options)
    except subprocess.CalledProcessError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    if numbers := [int(row) for row in wanted if row.isdecimal()]:
        title = "Targets" if options.size == 1 else f"At {options.size:g} of the targets' sizes"
        print_table(title, HEADER, rows(read_results(places.results), options.size, numbers))
    return 0


def _sized(recipe: Recipe, options: argparse.Namespace) -> Recipe:
    """A recipe at the size that was asked for; in a shorter race the rivals take part as often in proportion."""
    batches = options.batches or recipe.batches
    length = min(1, batches / recipe.batches)
    return replace(
        recipe,
        scale=recipe.scale * options.size,
        changes=scaled(recipe.changes, options.size),
        batches=batches,
        rivals_every=max(1, int(recipe.rivals_every * length)),
        maintain_every=min(recipe.maintain_every, batches),
    )


def _run(name: str, recipe: Recipe, places: Places, options: argparse.Namespace) -> None:
    """Run a recipe, unless its result is there. Raises `CalledProcessError`."""
    before = places.measured(name, recipe)
    if before is not None and not options.again:
        say(f"{name}: measured with this commit before, {before}")
        return
    say(f"{name}: {recipe.text}")
    _make_workload(places.workload(recipe), recipe)
    lake, result = places.lake(recipe), places.new_result(name)
    load = recipe.loads or options.fresh or not lake.exists()
    times = ("--times", str(recipe.batches), *_kept(recipe, result, options))
    match recipe.measures:
        case "race":
            _race(recipe, places, result, ("--keep-lake" if load else "--lake", str(lake)), options)
        case "starts":
            if load:
                first = replace(recipe, batches=1, contenders=("ours",))
                _race(first, places, Path(f"{lake}.json"), ("--keep-lake", str(lake)), options)
            _python("start.py", "--lake", str(lake), *times)
        case "floor":
            _python("floor.py", "--workload", str(places.workload(recipe)), *times)


def _race(
    recipe: Recipe, places: Places, result: Path, lake: Sequence[str], options: argparse.Namespace
) -> None:
    _python(
        "run.py", "--workload", str(places.workload(recipe)), "--batches", str(recipe.batches), *lake,
        "--contenders", ",".join(recipe.contenders), "--rivals-every", str(recipe.rivals_every),
        *(("--maintain-every", str(recipe.maintain_every)) if recipe.maintain_every else ()),
        *(() if options.warm_up else ("--no-warm-up",)), *_kept(recipe, result, options),
    )  # fmt: skip


def _kept(recipe: Recipe, result: Path, options: argparse.Namespace) -> Sequence[str]:
    """What every measurement is told: Spark's settings, where its result goes, and what it is a result of."""
    return (
        "--master", options.master, "--driver-memory", options.driver_memory,
        "--json", str(result), "--recipe", recipe.text,
    )  # fmt: skip


def _make_workload(workload: Path, recipe: Recipe) -> None:
    """Make a workload, unless there is one with so many batches. Raises `CalledProcessError`."""
    made = read(made_file(workload))
    if made is not None and made["batches"] >= recipe.batches:
        return
    # files are not written over: lakes and sources may hold them under other names
    shutil.rmtree(workload, ignore_errors=True)
    left, right = recipe.changes
    hot = ("--hot-share", str(recipe.hot_share), "--hot-every", "2") if recipe.hot_share else ()
    _python(
        "workload.py", str(workload), "--scale", f"{recipe.scale:g}", "--batches", str(recipe.batches),
        "--left-changes", str(left), "--right-changes", str(right), *hot,
    )  # fmt: skip


def _python(script: str, *arguments: str) -> None:
    # unbuffered: a long run is followed in a file, too, and its lines stand behind ours
    sys.stdout.flush()
    subprocess.run([sys.executable, "-u", _BENCH / script, *arguments], check=True)


def _name(recipe: Recipe) -> str:
    return f"{recipe.scale:g}" + (f"-hot-{recipe.hot_share:g}" if recipe.hot_share else "")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="row.py", description="Measure rows of the table of targets.")
    parser.add_argument(
        "rows", nargs="+", choices=[*ROWS, "all"], metavar="ROW", help=f"{', '.join(ROWS)} or all"
    )
    parser.add_argument(
        "--size", type=float, default=1, help="of tables and batches, against the targets' (default: 1)"
    )
    parser.add_argument("--batches", type=count, metavar="N", help="in each run (default: as the run needs)")
    parser.add_argument(
        "--data", type=Path, default=_BENCH / "data", metavar="DIR",
        help="workloads and first loads that are kept (default: bench/data)",
    )  # fmt: skip
    parser.add_argument(
        "--results", type=Path, default=RESULTS, metavar="DIR", help="(default: bench/results)"
    )
    parser.add_argument(
        "--fresh",
        action="store_true",
        help="use no first load that was kept; needed when what it writes changed",
    )
    parser.add_argument("--again", action="store_true", help="repeat runs that this commit has a result of")
    add_session(parser)
    parser.add_argument(
        "--no-warm-up", dest="warm_up", action="store_false", help="do not run a few small batches first"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
