"""Makes tables and plots of all kept results: `report.py --into docs/performance.md --images DIR`.

Without options the table is printed.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script, from wherever

from bench.contest.kept import RESULTS
from bench.targets.plots import draw
from bench.targets.profile import profile
from bench.targets.results import read_results
from bench.targets.table import markdown, put_into, rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Make what the arguments ask for; return the exit code."""
    options = _parser().parse_args(arguments)
    results = read_results(options.results)
    table = markdown(rows(results, options.size))
    if options.into is None:
        sys.stdout.write(table)
    else:
        try:
            put_into(options.into, table)
            put_into(options.into, profile(results), "profile")
        except (OSError, ValueError) as error:
            sys.stderr.write(f"{error}\n")
            return 2
    if options.images is not None:
        for file in draw(results, options.images):
            sys.stdout.write(f"written: {file}\n")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="report.py", description="Table and plots of all kept results.")
    parser.add_argument(
        "--results", type=Path, default=RESULTS, metavar="DIR", help="(default: bench/results)"
    )
    parser.add_argument("--into", type=Path, metavar="FILE", help="page of Markdown with marks for the table")
    parser.add_argument("--images", type=Path, metavar="DIR", help="where the plots go")
    parser.add_argument(
        "--size", type=float, default=1, help="of tables and batches, against the targets' (default: 1)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
