"""Joins two tables of many columns with all of them and with five, batch by batch in turn in one process.

`python bench/columns.py [--rows N] [--batches N] [--json FILE]`. Both read the same Parquet files, each into a lake of
its own. A batch changes ten thousand left and a hundred right rows; every other batch only columns that the join of
five does not read. The five columns are compared row by row. Exit code 1 where they differ.
"""

import sys
import tempfile
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script, from wherever

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from bench.contest.ways import (
    differences,
    in_own_lake,
    in_turn,
    joined_rows,
    keep,
    sized_parser,
    write_day,
    written_bytes,
)
from lakejoin.orchestration.cli.terminal import Row, print_table, say
from lakejoin.storage.lake.layout import Lake, joined_of
from lakejoin.storage.spark.session import start_session

COLUMNS = 13
"""Of each side beside its key and, on the left, the foreign key."""
LEFT_CHANGES, RIGHT_CHANGES = 10_000, 100
FIVE = "[id, customer, l0, right_r0, {sum: l1 + right_r1}]"
ALL = '["*"]'
_DECLARED = {side: ", ".join(f"{side}{n}: bigint" for n in range(COLUMNS)) for side in "lr"}
PIPELINE = f"""\
name: wide
lake: ./lake
tables:
  orders:
    source: {{format: parquet, path: "orders/{{date}}.parquet"}}
    columns: {{id: bigint, customer: bigint, {_DECLARED["l"]}}}
    key: [id]
  customers:
    source: {{format: parquet, path: "customers/{{date}}.parquet"}}
    columns: {{id: bigint, {_DECLARED["r"]}}}
    key: [id]
joins:
  placed: {{left: orders, right: customers, foreign_key: [customer], how: left, select: SELECT}}
"""


def main() -> int:
    """Run both in turn, print and keep what they took; return the exit code."""
    options = sized_parser(__doc__).parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        spark = start_session("local[2]", {"spark.driver.memory": options.driver_memory})
        pipelines = {
            way: in_own_lake(folder, PIPELINE.replace("SELECT", select), way)
            for way, select in (("all", ALL), ("five", FIVE))
        }
        seconds = in_turn(pipelines, spark, options.batches + 1, partial(make, spark, folder, options.rows))
        held = {
            way: written_bytes(Lake(pipeline.lake).path(joined_of("placed")))
            for way, pipeline in pipelines.items()
        }
        lakes = {way: written_bytes(pipeline.lake) for way, pipeline in pipelines.items()}
        every = joined_rows(spark, pipelines["all"], "placed")
        names: list[Column | str] = [
            "id",
            "customer",
            "l0",
            "right_r0",
            (F.col("l1") + F.col("right_r1")).alias("sum"),
        ]
        if (found := every.count()) != options.rows:
            raise SystemExit(f"{found:,} rows were joined, not {options.rows:,}")
        wrong = differences(every.select(*names), joined_rows(spark, pipelines["five"], "placed"))
    seen, unseen = (
        {way: sum(took[first::2]) / len(took[first::2]) for way, took in seconds.items()} for first in (1, 2)
    )
    rows: list[Row] = [
        ("first load, s", *[seconds[way][0] for way in seconds]),
        ("batch that changes what both read, s", *[round(seen[way], 2) for way in seconds]),
        ("batch that changes other columns, s", *[round(unseen[way], 2) for way in seconds]),
        ("joined table, MB", *[round(held[way] / 1e6, 1) for way in seconds]),
        ("lake, MB", *[round(lakes[way] / 1e6, 1) for way in seconds]),
    ]
    print_table("All columns against five", ["", *seconds], rows)
    say(f"{wrong:,} rows differ")
    keep(options.json, {"rows": options.rows, "seconds": seconds, "joined": held, "lakes": lakes})
    return 1 if wrong else 0


def make(spark: SparkSession, folder: Path, rows: int, day: int) -> None:
    """Write the files of a day: all rows on the first, then changes of the first columns, or of others, in turn."""
    customers = rows // 10
    if day == 0:
        left, right = spark.range(rows), spark.range(customers)
    else:
        left = spark.range(LEFT_CHANGES).select((F.col("id") * 7919 % rows).alias("id"))
        right = spark.range(RIGHT_CHANGES).select((F.col("id") * 7907 % customers).alias("id"))
    referred = (F.xxhash64("id") % customers + customers) % customers
    for table, changed, side, more in (
        ("orders", left, "l", [referred.alias("customer")]),
        ("customers", right, "r", []),
    ):
        columns = [_value(n, day).alias(f"{side}{n}") for n in range(COLUMNS)]
        rows_of_day = changed.dropDuplicates(["id"]).select(F.lit("u").alias("op"), "id", *more, *columns)
        write_day(rows_of_day, folder, table, day)


def _value(number: int, day: int) -> Column:
    """What a column is on a day: the first two change on odd days, the others on even ones."""
    changed = day - (day + 1) % 2 if number < 2 else day - day % 2
    return F.xxhash64("id", F.lit(number), F.lit(max(changed, 0))) % 1_000_000


if __name__ == "__main__":
    sys.exit(main())
