"""Joins a table with five others as a star and as a chain of five joins, batch by batch in turn in one process.

`python bench/star.py [--rows N] [--batches N] [--json FILE]`. Both read the same Parquet files, each into a lake of its
own. A batch changes ten thousand left rows and a hundred rows of one right table. The results are compared row by row.
Exit code 1 where they differ.
"""

import sys
import tempfile
from functools import partial
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script, from wherever

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.contest.live import live_bytes, tables_below
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
from lakejoin.storage.spark.session import start_session

RIGHTS = 5
LEFT_CHANGES, RIGHT_CHANGES = 10_000, 100
_TABLES = "".join(
    f"""\
  right_{n}:
    source: {{format: parquet, path: "right_{n}/{{date}}.parquet"}}
    columns: {{id: bigint, name: string, size: bigint, day: int}}
    key: [id]
"""
    for n in range(RIGHTS)
)
_KEYS = ", ".join(f"key_{n}: bigint" for n in range(RIGHTS))
PIPELINE = f"""\
name: star
lake: ./lake
tables:
  facts:
    source: {{format: parquet, path: "facts/{{date}}.parquet"}}
    columns: {{id: bigint, {_KEYS}, amount: bigint, note: string, day: int}}
    key: [id]
{_TABLES}joins:
"""
STAR = "  last: {left: facts, rights: {%s}}\n" % ", ".join(  # noqa: UP031 - full of braces
    f"r{n}: {{table: right_{n}, foreign_key: [key_{n}], how: left}}" for n in range(RIGHTS)
)
_LINKS = ["facts", *[f"link_{n}" for n in range(RIGHTS - 1)], "last"]
CHAIN = "".join(
    f"  {name}: {{left: {left}, right: right_{n}, foreign_key: [key_{n}], how: left, prefix: r{n}_}}\n"
    for n, (left, name) in enumerate(pairwise(_LINKS))
)


def main() -> int:
    """Run both in turn, print and keep what they took; return the exit code."""
    options = sized_parser(__doc__).parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        spark = start_session("local[2]", {"spark.driver.memory": options.driver_memory})
        pipelines = {
            way: in_own_lake(folder, PIPELINE + joins, way)
            for way, joins in (("chain", CHAIN), ("star", STAR))
        }
        seconds = in_turn(pipelines, spark, options.batches + 1, partial(make, spark, folder, options.rows))
        written = {way: written_bytes(pipeline.lake) for way, pipeline in pipelines.items()}
        joins = {
            way: sum(map(live_bytes, tables_below(Path(pipeline.lake) / "joins")))
            for way, pipeline in pipelines.items()
        }
        star, chain = (joined_rows(spark, pipelines[way], "last") for way in ("star", "chain"))
        if (found := star.count()) != options.rows:
            raise SystemExit(f"{found:,} rows were joined, not {options.rows:,}")
        wrong = differences(chain, star)
    rows: list[Row] = [
        ("first load, s", *[seconds[way][0] for way in seconds]),
        ("batch, s", *[round(sum(took[2:]) / len(took[2:]), 2) for took in seconds.values()]),
        ("tables of the joins, MB", *[round(joins[way] / 1e6, 1) for way in seconds]),
        ("all files written, MB", *[round(written[way] / 1e6, 1) for way in seconds]),
    ]
    print_table("A chain of five joins against a star", ["", *seconds], rows)
    say(f"{wrong:,} rows differ")
    keep(options.json, {"rows": options.rows, "seconds": seconds, "joins": joins, "written": written})
    return 1 if wrong else 0


def make(spark: SparkSession, folder: Path, rows: int, day: int) -> None:
    """Write the files of a day: all rows on the first, then changes of the left table and of one right one in turn."""
    rights = rows // 100
    left = spark.range(rows if day == 0 else LEFT_CHANGES)
    ids = left.select((F.col("id") if day == 0 else (F.col("id") * 7919 + day) % rows).alias("id"))
    keys = [_spread(F.lit(n), rights).alias(f"key_{n}") for n in range(RIGHTS)]
    _write(ids.dropDuplicates(["id"]), folder, "facts", day, keys)
    for n in range(RIGHTS):
        if day == 0:
            _write(spark.range(rights), folder, f"right_{n}", day, [])
        elif day % RIGHTS == n:
            changed = spark.range(RIGHT_CHANGES).select((F.col("id") * 7 % rights).alias("id"))
            _write(changed, folder, f"right_{n}", day, [])


def _write(ids: DataFrame, folder: Path, table: str, day: int, more: list[Column]) -> None:
    own = (
        [
            _spread(F.lit("amount"), 10_000).alias("amount"),
            F.concat(F.lit("note "), F.col("id") % 1_000).alias("note"),
        ]
        if more
        else [
            F.concat(F.lit(f"{table} "), F.col("id")).alias("name"),
            _spread(F.lit("size"), 500).alias("size"),
        ]
    )
    rows = ids.select(F.lit("u").alias("op"), "id", *more, *own, F.lit(day).alias("day"))
    write_day(rows, folder, table, day)


def _spread(seed: Column, values: int) -> Column:
    return F.pmod(F.xxhash64("id", seed), F.lit(values))


if __name__ == "__main__":
    sys.exit(main())
