"""Makes a workload: `workload.py OUT --scale 1 --batches 10 --left-changes 10000 --right-changes 100 --seed 1`.

README.md says what is written and how the checksum is defined. The same arguments make the same rows on every machine
that has the same tpchgen-cli.
"""

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script, from wherever

from bench.tpch.answers import Joined, answer_file, change_file
from bench.tpch.files import SCHEMAS, write_base, write_changes, write_json_lines
from bench.tpch.left import LeftChanges
from bench.tpch.right import RightChanges
from bench.tpch.side import Side


@dataclass(frozen=True)
class Size:
    """How large a workload is, and what makes it differ from another of this size."""

    scale: float
    batches: int
    left_changes: int
    right_changes: int
    seed: int
    celebrity: bool


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the workload that the arguments describe; return the exit code."""
    options = _parser().parse_args(arguments)
    size = Size(
        options.scale, options.batches, options.left_changes, options.right_changes, options.seed,
        options.celebrity,
    )  # fmt: skip
    with duckdb.connect(config={"memory_limit": options.memory}) as connection:
        for line in make(options.out, size, connection):
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
    if options.jsonl:
        write_json_lines(options.out)
    return 0


def make(workload: Path, size: Size, connection: duckdb.DuckDBPyConnection) -> Iterator[str]:
    """Write a workload batch after batch; says of each what it holds."""
    for folder in (*SCHEMAS, "expected"):
        (workload / folder).mkdir(parents=True, exist_ok=True)
    write_base(connection, workload, size.scale, celebrity=size.celebrity)
    rng = random.Random(size.seed)  # noqa: S311 - its numbers must come again, and keep no secret
    left, right = (
        Side(connection, schema, change_file(workload, side, 0), rng) for side, schema in SCHEMAS.items()
    )
    left_changes = LeftChanges(left, right, rng)
    right_changes = RightChanges(right, rng, celebrity=size.celebrity)
    joined = Joined(connection, workload)
    yield _answer(workload, joined, 0, f"base {len(left.keys)} x {len(right.keys)}")
    for batch in range(1, size.batches + 1):
        # the right side first: orders of the same batch may point at a customer that was just inserted
        of_right = right_changes.batch(size.right_changes) if size.right_changes else []
        of_left = left_changes.batch(size.left_changes) if size.left_changes else []
        for side, rows in (("left", of_left), ("right", of_right)):
            write_changes(rows, SCHEMAS[side], change_file(workload, side, batch))
            joined.change(side, batch)
        yield _answer(workload, joined, batch, f"{len(of_left)} + {len(of_right)} changes")


def _answer(workload: Path, joined: Joined, batch: int, what: str) -> str:
    """Keep what the joins hold after a batch, and say it."""
    answer = joined.answer()
    answer_file(workload, batch).write_text(answer.text)
    return f"batch {batch}: {what}, inner {answer.inner_count}, left {answer.left_count}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="workload.py", description="Make change data of a foreign-key join."
    )
    parser.add_argument("out", type=Path, metavar="OUT", help="folder to write to")
    parser.add_argument(
        "--scale", type=float, default=1, help="of TPC-H: 1 is 1.5 million orders (default: 1)"
    )
    parser.add_argument("--batches", type=int, default=10, help="(default: 10)")
    parser.add_argument("--left-changes", type=int, default=10000, help="rows a batch (default: 10000)")
    parser.add_argument("--right-changes", type=int, default=100, help="rows a batch (default: 100)")
    parser.add_argument("--seed", type=int, default=1, help="other seeds make other changes (default: 1)")
    parser.add_argument(
        "--celebrity", action="store_true",
        help="one customer has 1 %% of all orders and changes in every batch",
    )  # fmt: skip
    parser.add_argument("--jsonl", action="store_true", help="also write every file as gzipped JSON lines")
    parser.add_argument("--memory", default="4GB", help="memory limit of DuckDB (default: 4GB)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
