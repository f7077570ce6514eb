"""Works off a year of small days: put together by size, in one batch, and with `--dates` some days in a batch each.

`python bench/backfill.py [--days N] [--records N] [--dates N] [--json FILE]`. Each way begins with an empty lake, in
turn in one process, after a run that warms up; the joined tables are compared. Exit code 1 where they differ.
"""

import argparse
import json
import sys
import tempfile
import time
from datetime import date, timedelta
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script, from wherever

from pyspark.sql import DataFrame, SparkSession

from bench.contest.ways import differences, in_own_lake, joined_rows, keep, parser
from lakejoin.orchestration.cli.terminal import print_table, say
from lakejoin.orchestration.planning.pending_input import BatchBy
from lakejoin.orchestration.runs.run import run_batches
from lakejoin.storage.spark.session import start_session

FIRST = date(2024, 1, 1)
PIPELINE = """\
name: year
lake: ./lake
tables:
  orders:
    source: {format: jsonl, path: "orders/{date}.jsonl"}
    columns: {id: bigint, customer: bigint, amount: bigint}
    key: [id]
  customers:
    source: {format: jsonl, path: "customers/{date}.jsonl"}
    columns: {id: bigint, city: string}
    key: [id]
joins:
  placed: {left: orders, right: customers, foreign_key: [customer], how: left}
"""


def main() -> int:
    """Run the ways in turn, print and keep what they took; return the exit code."""
    options = _options()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        make(folder, options.days, options.records)
        spark = start_session("local[2]", {"spark.driver.memory": options.driver_memory})
        _ours(spark, folder, "warm", "all")
        seconds: dict[str, list[float]] = {"size": [], "all": []}
        joined: dict[str, DataFrame] = {}
        for turn in range(options.turns):
            for way in ("all", "size"):
                took, joined[way], batches = _ours(spark, folder, f"{way}-{turn}", way)
                seconds[way].append(took)
                say(f"{way}: {took:.1f} s in {batches} batches")
        wrong = differences(joined["all"], joined["size"])
        if options.dates:
            last = FIRST + timedelta(days=options.dates - 1)
            took, _, batches = _ours(spark, folder, "date", "date", last)
            seconds["date"] = [took]
            say(f"date: {took:.1f} s in {batches} batches")
    print_table("Seconds", ["way", "seconds"], [(way, round(min(took), 2)) for way, took in seconds.items()])
    say(f"{wrong:,} rows differ")
    asked = {name: getattr(options, name) for name in ("days", "records", "dates")}
    keep(options.json, asked | {"seconds": seconds})
    return 1 if wrong else 0


def make(folder: Path, days: int, records: int) -> None:
    """Write a file a day for each table: nine of ten records are of orders, half of them of keys there are."""
    random, number = Random(1), 0  # noqa: S311 - the same in each run
    for table in ("orders", "customers"):
        (folder / table).mkdir()
    for day in range(days):
        name = f"{FIRST + timedelta(days=day)}.jsonl"
        changed = max(1, records // 10)
        with (folder / "orders" / name).open("w") as file:
            for _ in range(records - changed):
                number += random.random() < 0.5 or not number
                row = {
                    "op": "u",
                    "id": random.randint(1, number),
                    "customer": random.randint(1, 200),
                    "amount": day,
                }
                file.write(json.dumps(row) + "\n")
        with (folder / "customers" / name).open("w") as file:
            for _ in range(changed):
                file.write(
                    json.dumps({"op": "u", "id": random.randint(1, 200), "city": f"city {day}"}) + "\n"
                )


def _ours(
    spark: SparkSession, folder: Path, name: str, batch_by: BatchBy, last: date = date.max
) -> tuple[float, DataFrame, int]:
    """Work everything off, up to a day; return the seconds, the joined table and how many batches there were."""
    pipeline = in_own_lake(folder, PIPELINE, name)
    started = time.monotonic()
    batches = len(list(run_batches(pipeline, spark, batch_by=batch_by, dates=(date.min, last))))
    return time.monotonic() - started, joined_rows(spark, pipeline, "placed"), batches


def _options() -> argparse.Namespace:
    found = parser(__doc__)
    found.add_argument("--days", type=int, default=365)
    found.add_argument("--records", type=int, default=100, help="of a day (default: 100)")
    found.add_argument("--dates", type=int, default=0, help="days that also get a batch each (default: none)")
    found.add_argument("--turns", type=int, default=3)
    return found.parse_args()


if __name__ == "__main__":
    sys.exit(main())
