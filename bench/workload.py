"""Makes a workload: `workload.py OUT --scale 1 --batches 10 --left-changes 10000 --right-changes 100 --seed 1`.

README.md says what is written and how the checksum is defined. The same arguments make the same rows on every machine
that has the same tpchgen-cli.
"""

import argparse
import json
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
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
    hot_share: float = 0
    """Share of all orders that one customer has."""
    hot_every: int = 1
    """That customer is changed in every so manieth batch; where this is not 1, then nothing else is."""

    def changes(self, batch: int) -> tuple[int, int]:
        """How many rows of each side change in a batch."""
        if self.hot_share and self.hot_every > 1 and batch % self.hot_every == 0:
            return 0, 1
        return self.left_changes, self.right_changes

    def heats(self, batch: int) -> bool:
        """Whether the customer with many orders is changed in a batch."""
        return bool(self.hot_share) and batch % self.hot_every == 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the workload that the arguments describe; return the exit code."""
    options = _parser().parse_args(arguments)
    size = Size(
        options.scale, options.batches, options.left_changes, options.right_changes, options.seed,
        options.hot_share, options.hot_every,
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
    write_base(connection, workload, size.scale, size.hot_share)
    rng = random.Random(size.seed)  # noqa: S311 - its numbers must come again, and keep no secret
    left, right = (
        Side(connection, schema, change_file(workload, side, 0), rng) for side, schema in SCHEMAS.items()
    )
    left_changes = LeftChanges(left, right, rng)
    right_changes = RightChanges(right, rng, spared=bool(size.hot_share))
    joined = Joined(connection, workload)
    yield _answer(workload, joined, 0, f"base {len(left.keys)} x {len(right.keys)}")
    for batch in range(1, size.batches + 1):
        # the right side first: orders of the same batch may point at a customer that was just inserted
        lefts, rights = size.changes(batch)
        of_right = right_changes.batch(rights, celebrity=size.heats(batch)) if rights else []
        of_left = left_changes.batch(lefts) if lefts else []
        for side, rows in (("left", of_left), ("right", of_right)):
            write_changes(rows, SCHEMAS[side], change_file(workload, side, batch))
            joined.change(side, batch)
        yield _answer(workload, joined, batch, f"{len(of_left)} + {len(of_right)} changes")
    made_file(workload).write_text(json.dumps(asdict(size)) + "\n")


def made_file(workload: Path) -> Path:
    """Where it is kept what a workload was made with; there once the workload is complete."""
    return workload / "made.json"


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
    hot = parser.add_argument_group("one customer with many orders")
    hot.add_argument("--hot-share", type=_share, default=0, help="of all orders (default: no such customer)")
    hot.add_argument(
        "--hot-every", type=int, default=1, metavar="N",
        help="every Nth batch changes this customer and nothing else (default: it changes in every batch)",
    )  # fmt: skip
    hot.add_argument(
        "--celebrity", dest="hot_share", action="store_const", const=0.01, help="the same as --hot-share 0.01"
    )
    parser.add_argument("--jsonl", action="store_true", help="also write every file as gzipped JSON lines")
    parser.add_argument("--memory", default="4GB", help="memory limit of DuckDB (default: 4GB)")
    return parser


def _share(argument: str) -> float:
    try:
        share = float(argument)
    except ValueError:
        share = 0
    if 0 < share <= 0.5:
        return share
    raise argparse.ArgumentTypeError(f"{argument!r}: expected a share above 0 and up to 0.5")


if __name__ == "__main__":
    sys.exit(main())
