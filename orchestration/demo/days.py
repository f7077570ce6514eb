"""Works off the demo's week of flights day by day, and compares each day with PostgreSQL's own answers."""

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakejoin.orchestration.batch.context import Progress
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.config.schema.expressions import referenced_columns
from lakejoin.orchestration.config.schema.groups import columns_of_key
from lakejoin.orchestration.demo.csv_comparison import Comparison, compare, read_expected
from lakejoin.orchestration.demo.example import Example
from lakejoin.orchestration.errors import WrongUsage
from lakejoin.orchestration.runs.run import run_batches
from lakejoin.storage.errors import LakejoinError
from lakejoin.storage.lake.layout import PLAN, Lake, joined_of
from lakejoin.storage.lake.lock import writing
from lakejoin.storage.lake.plan import Published
from lakejoin.transforms.model.group_spec import GroupSpec
from lakejoin.transforms.model.result_spec import ResultSpec
from lakejoin.transforms.model.schemas import named

_KEPT = ("_lock", "_lock_turn", "_dagster")  # the lock is held, and a web interface may be running


@dataclass(frozen=True)
class Day:
    """A day that was worked off, and how its joins compare with what the database answered."""

    batch: Published
    comparisons: tuple[Comparison, ...]
    seconds: float
    """From the beginning of the batch to its end, without the comparison."""


def empty_lake(pipeline: Pipeline) -> None:
    """Remove what an earlier demo left. Raises `WrongUsage` for a directory that holds something else."""
    lake = Lake(pipeline.lake)
    if lake.local is None:
        raise WrongUsage(
            f"{lake.root}: the demo starts from an empty lake and removes no URI; name a directory"
        )
    if not lake.local.exists():
        return
    there = [path for path in lake.local.iterdir() if path.name not in _KEPT]
    if there and not (lake.local / PLAN).is_dir():
        raise WrongUsage(
            f"{lake.local}: is neither empty nor a lake, so the demo does not remove it; name another"
        )
    with writing(lake):
        # The plan goes last: what an interrupted removal leaves is still recognised as a lake.
        for path in sorted(there, key=lambda path: path.name == PLAN):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def run_days(example: Example, spark: SparkSession, progress: Progress) -> Iterator[Day]:
    """Work off an example day by day; after each day compare its joins with the database's answers."""
    started = time.monotonic()
    for batch in run_batches(example.pipeline, spark, progress=progress):
        seconds = time.monotonic() - started
        progress("comparing with PostgreSQL")
        yield Day(batch, tuple(_compared(example, spark, batch)), seconds)
        started = time.monotonic()


def _compared(example: Example, spark: SparkSession, batch: Published) -> Iterator[Comparison]:
    if len(batch.dates) != 1:
        raise LakejoinError(
            f"batch {batch.batch} covers {len(batch.dates)} days; the demo compares day by day"
        )
    lake = Lake(example.pipeline.lake)
    for name in example.pipeline.kept_by_key:
        table, day = joined_of(name), batch.dates[0]
        reader = spark.read.format("delta").option("versionAsOf", batch.versions[table])
        join = example.pipeline.keyed_spec(name)
        expected = (
            _grouped(example, spark, name, day)
            if isinstance(join, GroupSpec)
            else _selected(_answer(example, spark, join, day), join)
        )
        yield compare(name, reader.load(lake.path(table)), expected, join.joined_key)


def _grouped(example: Example, spark: SparkSession, name: str, day: date) -> DataFrame:
    """What Spark's own GROUP BY makes of the database's rows of a table."""
    group = example.pipeline.groups[name]
    rows = read_expected(spark, str(example.rows(group.of, day)))
    typed = _typed(rows, example.pipeline.tables[group.of].spec.columns)
    by = [F.expr(column.text).alias(column.name) for column in columns_of_key(group.by)]
    grouped = typed.groupBy(*by).agg(*[F.expr(text).alias(made) for made, text in group.select.items()])
    return _as_texts(grouped)


def _typed(rows: DataFrame, columns: StructType) -> DataFrame:
    """Those of some columns that texts have, with their types."""
    there = set(rows.columns)
    return rows.select(
        *[named(f.name).try_cast(f.dataType).alias(f.name) for f in columns if f.name in there]
    )


def _as_texts(rows: DataFrame) -> DataFrame:
    return rows.select(*[named(name).cast("string").alias(name) for name in rows.columns])


def _answer(example: Example, spark: SparkSession, join: ResultSpec, day: date) -> DataFrame:
    """What the database answered for the first right side, joined with its rows of a star's other right sides."""
    first, *others = join.parts
    rows = read_expected(spark, str(example.answer(first, day)))
    for part in others:
        right = read_expected(spark, str(example.rows(part.right, day)))
        renamed = right.select(*[named(name).alias(part.prefix + name) for name in right.columns])
        pairs = zip(part.foreign_key, part.right_key, strict=True)
        same = [F.expr(text) == named(part.prefix + name) for text, name in pairs]
        rows = rows.join(renamed, same, part.how)
    return rows


def _selected(rows: DataFrame, join: ResultSpec) -> DataFrame:
    """What a join shows of the database's answer, by plain SQL over that; as texts, as the answer has them.

    A column that was added to the source later is in no answer before.
    """
    if join.select is None:
        return rows
    there = set(rows.columns)
    typed = _typed(rows, join.pair_columns)
    selected = [entry for entry in join.select if there.issuperset(referenced_columns([entry.sql]))]
    shown = typed.where(join.where or "true").select(*[F.expr(e.sql).alias(e.name) for e in selected])
    return _as_texts(shown)
