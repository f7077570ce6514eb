"""Joins a stream with a versioned table, in one batch and in ten, beside one as-of join of the same data in Spark.

`python bench/streams.py [--records N] [--versions N] [--json FILE]`. Both read the same Parquet files and write a Delta
table; the answers are compared row by row. Ours also checks, logs and remembers what it read, so that the next batch
goes on from there. Exit code 1 where the answers differ.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script, from wherever

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from bench.contest.ways import differences, in_own_lake, joined_rows, keep, parser
from lakejoin.orchestration.cli.terminal import print_table, say
from lakejoin.orchestration.planning.pending_input import BatchBy
from lakejoin.orchestration.runs.run import run_batches
from lakejoin.storage.spark.session import start_session

DAYS = 10
KEYS = 1000
START = 1_356_998_400
"""The first day, in seconds since 1970."""
PIPELINE = """\
name: streams
lake: ./lake
tables:
  prices:
    source: {format: parquet, path: "prices/{date}.parquet"}
    columns: {item: bigint, price: bigint, at: timestamp}
    key: [item]
    event_time: at
    versioned: {history_retention: 30 days}
streams:
  clicks:
    source: {format: parquet, path: "clicks/{date}.parquet"}
    columns: {id: bigint, item: bigint, at: timestamp}
    key: [id]
    event_time: at
joins:
  priced: {stream: clicks, table: prices, foreign_key: [item], how: left, grace: 2 hours, late: join}
"""


def main() -> int:
    """Run both ways and Spark's, print and keep what they took; return the exit code."""
    options = _options()
    spark = start_session("local[2]", {"spark.driver.memory": options.driver_memory})
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        make(spark, folder, options.records, options.versions)
        seconds: dict[str, float] = {}
        rows: dict[str, DataFrame] = {}
        for run, work in _runs(spark, folder).items():
            started = time.monotonic()
            rows[run] = work()
            seconds[run] = round(time.monotonic() - started, 2)
            say(f"{run}: {seconds[run]} s")
        compared = {run: found.select("id", "item", "at", "right_price") for run, found in rows.items()}
        wrong = {run: differences(compared[run], compared["spark"]) for run in ("one batch", "ten batches")}
    print_table("Seconds", ["run", "seconds"], list(seconds.items()))
    for run, count in wrong.items():
        say(f"{run}: {count:,} rows differ from Spark's")
    asked = {name: getattr(options, name) for name in ("records", "versions")}
    keep(options.json, asked | {"seconds": seconds})
    return 1 if any(wrong.values()) else 0


def make(spark: SparkSession, folder: Path, records: int, versions: int) -> None:
    """Write a day's versions and records into a Parquet file each; a record may come up to an hour out of order."""
    day = F.lit(86_400)
    price = spark.range(versions).select(
        "id",
        (F.col("id") % KEYS).alias("item"),
        (F.xxhash64("id") % 10_000).alias("price"),
        (F.col("id") * DAYS * day / versions).alias("second"),
    )
    click = spark.range(records).select(
        "id",
        F.pmod(F.xxhash64("id"), F.lit(KEYS)).alias("item"),
        (F.col("id") * DAYS * day / records - F.pmod(F.xxhash64("id", F.lit(1)), F.lit(3600))).alias(
            "second"
        ),
    )
    for name, rows, number in (("prices", price, versions), ("clicks", click, records)):
        at = F.timestamp_seconds(F.lit(START) + F.greatest("second", F.lit(0)))
        dated = rows.withColumn("at", at).drop("second").withColumn("op", F.lit("c"))
        for step in range(DAYS):
            of_day = (F.col("id") * DAYS >= number * step) & (F.col("id") * DAYS < number * (step + 1))
            _write(dated.where(of_day).orderBy("id"), folder / name / f"2013-01-{step + 1:02d}.parquet")


def _write(rows: DataFrame, file: Path) -> None:
    """One file under a name of its own."""
    parts = file.with_suffix(".parts")
    rows.coalesce(1).write.parquet(str(parts))
    next(parts.glob("part-*.parquet")).rename(file)
    for rest in parts.iterdir():
        rest.unlink()
    parts.rmdir()


def _runs(spark: SparkSession, folder: Path) -> Mapping[str, Callable[[], DataFrame]]:
    return {
        "warm-up": lambda: _ours(spark, folder, "warm", "all"),
        "spark": lambda: _spark(spark, folder),
        "one batch": lambda: _ours(spark, folder, "one", "all"),
        "ten batches": lambda: _ours(spark, folder, "ten", "date"),
    }


def _ours(spark: SparkSession, folder: Path, name: str, batch_by: BatchBy) -> DataFrame:
    """Work everything off and flush; return the joined table."""
    pipeline = in_own_lake(folder, PIPELINE, name)
    for _ in run_batches(pipeline, spark, batch_by=batch_by, flush=True):
        pass
    return joined_rows(spark, pipeline, "priced")


def _spark(spark: SparkSession, folder: Path) -> DataFrame:
    """The whole history and all records at once: a union, a sort and the last version before each record."""
    prices, clicks = (spark.read.parquet(str(folder / name)) for name in ("prices", "clicks"))
    both = clicks.select("id", "item", "at").unionByName(
        prices.select("item", "at", F.struct("price").alias("version")), allowMissingColumns=True
    )
    order = Window.partitionBy("item").orderBy("at", F.col("id").isNotNull())
    met = F.last("version", ignorenulls=True).over(order.rowsBetween(Window.unboundedPreceding, 0))
    joined = both.withColumn("met", met).where("id IS NOT NULL")
    path = str(folder / "spark")
    joined.select("id", "item", "at", F.col("met")["price"].alias("right_price")).write.format("delta").save(
        path
    )
    return spark.read.format("delta").load(path)


def _options() -> argparse.Namespace:
    found = parser(__doc__)
    found.add_argument("--records", type=int, default=1_000_000)
    found.add_argument("--versions", type=int, default=100_000)
    return found.parse_args()


if __name__ == "__main__":
    sys.exit(main())
