"""Keeps groups up to date beside GROUP BY over all rows, by Spark and by DuckDB, batch by batch in turn.

`python bench/groups.py [--rows N] [--batches N] [--json FILE]`. A group has ten rows; a batch changes ten thousand. One
lake adjusts its groups by what changed, another computes them from their rows. Who recomputes is given the current rows
free of charge: a Delta table, a Parquet file. The groups are compared row by row with Spark's. Exit code 1 where they
differ.
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script, from wherever

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.contest.duck import Duck
from bench.contest.ways import (
    differences,
    in_own_lake,
    joined_rows,
    keep,
    sized_parser,
    tell,
    timed,
    write_day,
)
from lakejoin.orchestration.cli.terminal import Row, print_table, say
from lakejoin.orchestration.runs.run import run_batches
from lakejoin.storage.spark.session import start_session

ROWS_OF_GROUP, CHANGES = 10, 10_000
PIPELINE = """\
name: groups
lake: ./lake
tables:
  orders:
    source: {format: parquet, path: "orders/{date}.parquet"}
    columns: {id: bigint, customer: bigint, amount: bigint, price: "decimal(12,2)", note: string, at: timestamp}
    key: [id]
groups:
  by_customer:
    of: orders
    by: [customer]
    select: SELECT
"""
SELECTS = {
    "adjusted": "{orders: count(*), pieces: sum(amount), revenue: sum(price)}",
    "computed": "{orders: count(*), pieces: sum(amount), revenue: sum(price), most: max(amount)}",
}
SQL = (
    "SELECT customer, count(*) AS orders, sum(amount) AS pieces, sum(price) AS revenue, max(amount) AS most "
    "FROM {rows} GROUP BY customer"
)
"""As the groups that are computed."""


def main() -> int:
    """Run all in turn, print and keep what they took; return the exit code."""
    options = sized_parser(__doc__).parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        spark = start_session("local[2]", {"spark.driver.memory": options.driver_memory})
        pipelines = {
            way: in_own_lake(folder, PIPELINE.replace("SELECT", select), way)
            for way, select in SELECTS.items()
        }
        current, result = str(folder / "current"), str(folder / "recomputed")
        given = SQL.format(rows=f"read_parquet('{current}.duck/*.parquet')")
        duck = Duck(None, {"threads": 2, "memory_limit": options.driver_memory + "b"})
        ways: dict[str, Callable[[], object]] = {
            "adjusted": lambda: list(run_batches(pipelines["adjusted"], spark)),
            "computed": lambda: list(run_batches(pipelines["computed"], spark)),
            "spark": lambda: _recompute(spark, current).write.format("delta").mode("overwrite").save(result),
            "duckdb": lambda: duck.execute(f"COPY ({given}) TO '{folder}/duck.parquet'"),
        }
        seconds: dict[str, list[float]] = {way: [] for way in ways}
        wrong = 0
        with duck:
            for day in range(options.batches + 1):
                make(spark, folder, options.rows, day)
                for way, work in ways.items():
                    if way == "spark":
                        _give(spark, pipelines["computed"].lake, current)
                    seconds[way].append(timed(work))
                expected = spark.read.format("delta").load(result)
                for pipeline in pipelines.values():
                    found = joined_rows(spark, pipeline, "by_customer")
                    wrong += differences(found, expected.select(found.columns))
                tell(day, seconds)
    rows: list[Row] = [
        ("first load, s", *[took[0] for took in seconds.values()]),
        ("batch, s", *[median(took[1:]) for took in seconds.values()]),
    ]
    print_table("Groups against GROUP BY of all rows", ["", *seconds], rows)
    say(f"{wrong:,} rows differ")
    keep(options.json, {"rows": options.rows, "seconds": seconds})
    return 1 if wrong else 0


def make(spark: SparkSession, folder: Path, rows: int, day: int) -> None:
    """Write the file of a day: all rows on the first, then changes of some, of which a third get another customer."""
    ids = spark.range(rows) if day == 0 else spark.range(CHANGES).select((F.col("id") * 7919 + day) % rows)
    ids = ids.toDF("id").dropDuplicates(["id"])
    moved = F.when(F.col("id") % 3 == 0, day).otherwise(0)
    customer = F.pmod(F.xxhash64("id", moved), F.lit(rows // ROWS_OF_GROUP))
    made = ids.select(
        F.lit("u").alias("op"),
        "id",
        customer.alias("customer"),
        F.pmod(F.xxhash64("id", F.lit(day), F.lit("amount")), F.lit(10_000)).alias("amount"),
        (F.pmod(F.xxhash64("id", F.lit(day)), F.lit(100_000)) / 100).cast("decimal(12,2)").alias("price"),
        F.concat(F.lit("note "), F.col("id")).alias("note"),
        F.timestamp_seconds(F.lit(1_700_000_000 + 86_400 * day) + F.col("id") % 86_400).alias("at"),
    )
    write_day(made, folder, "orders", day)


def _give(spark: SparkSession, lake: str, current: str) -> None:
    """Give those who recompute the current rows: as a compacted Delta table, and as a Parquet file."""
    changes = spark.read.format("delta").load(f"{lake}/tables/orders/changes")
    names = ["id", "customer", "amount", "price", "note", "at"]
    latest = changes.groupBy("id").agg(F.max_by(F.struct(*names[1:]), "_lj_batch").alias("row"))
    rows = latest.select("id", "row.*")
    rows.write.format("delta").mode("overwrite").save(current)
    spark.read.format("delta").load(current).write.mode("overwrite").parquet(f"{current}.duck")


def _recompute(spark: SparkSession, current: str) -> DataFrame:
    spark.read.format("delta").load(current).createOrReplaceTempView("current_orders")
    return spark.sql(SQL.format(rows="current_orders"))


if __name__ == "__main__":
    sys.exit(main())
