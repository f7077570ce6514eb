"""The shortest program that leaves the tables of a first load: what of it nobody who works with Spark can spare.

It knows beforehand what a load has to find out: that every record can be read, and inserts its key. So it checks none,
has nothing to quarantine, evaluates no rule of the join, and keeps no plan and no count. All that it makes sure of is
that no key comes twice, for else its tables would be wrong.
"""

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.contest.ours import JOIN, PIPELINE
from bench.tpch.answers import change_file
from lakejoin.orchestration.config import load_text
from lakejoin.storage.lake.layout import changes_of, joined_of, response_log_of, subscription_log_of
from lakejoin.transforms.foreign_key_join.emissions import emit_pairs, joined_schema
from lakejoin.transforms.foreign_key_join.insert_only import applied_answers, pair, subscribe
from lakejoin.transforms.foreign_key_join.responses import response_schema
from lakejoin.transforms.foreign_key_join.subscriptions import subscription_schema
from lakejoin.transforms.model.hashing import value_hash
from lakejoin.transforms.model.join_sides import inserted, valued
from lakejoin.transforms.model.schemas import (
    BATCH,
    CURRENT,
    DELETED,
    DERIVED,
    HASH,
    OP,
    POSITION,
    POSITION_TYPE,
    SEQUENCE,
    TIE,
    TIME,
    VERDICT,
    changes_schema,
    named,
)
from lakejoin.transforms.model.specs import TableSpec


def least_tables(spark: SparkSession, workload: Path) -> Mapping[str, DataFrame]:
    """Return the rows of the tables that the first load of a workload leaves, by their names below the lake.

    Runs a job for each source. Raises `ValueError` where a key comes twice.
    """
    pipeline = load_text(PIPELINE, workload)
    (join,) = pipeline.join_spec(JOIN).parts
    left, right = (pipeline.tables[name].spec for name in (join.left, join.right))
    orders = _changes(spark, left, change_file(workload, "left", 0))
    customers = _changes(spark, right, change_file(workload, "right", 0))
    inserts = inserted(orders, join)
    pairs = pair(inserts, valued(customers, right.key, right.columns), customers.limit(0), join.how)
    return {
        changes_of(left.name): orders,
        changes_of(right.name): customers,
        subscription_log_of(JOIN): _logged(subscribe(inserts, join.how), *subscription_schema(join).names),
        response_log_of(JOIN): _logged(applied_answers(pairs, join), *response_schema(join).names),
        joined_of(JOIN): _of_batch(emit_pairs(pairs, join)).select(*map(named, joined_schema(join).names)),
    }


def _changes(spark: SparkSession, table: TableSpec, file: Path) -> DataFrame:
    """The records of a file, each the insert of its key."""
    source = spark.read.parquet(str(file))
    line = (F.col("_metadata.row_index") + 1).alias("line")
    place = F.struct(F.lit(None).cast("date").alias("date"), F.lit(file.name).alias("file"), line)
    known: dict[str, Column] = {
        POSITION: place.cast(POSITION_TYPE),
        SEQUENCE: F.struct(*[named(name) for name in table.sequence.names]),
        TIME: named(table.event_time or ""),
        HASH: value_hash(table.columns),
        DELETED: F.lit(False),
        OP: F.lit("upsert"),
        VERDICT: F.lit("applied"),
        CURRENT: F.lit(True),
        DERIVED: F.lit(False),
        TIE: F.lit(False),
    }
    _check_keys(source.select(*map(named, table.key)), file)
    columns = changes_schema(table.columns, table.sequence).names
    return _logged(source.drop(OP).withColumns(known), *columns)


def _check_keys(keys: DataFrame, file: Path) -> None:
    if keys.count() != keys.distinct().count():
        raise ValueError(f"{file}: a key comes twice; found that some rows are no inserts")


def _logged(rows: DataFrame, *columns: str) -> DataFrame:
    """Columns of a log, the batch first."""
    return _of_batch(rows).select(*map(named, dict.fromkeys([BATCH, *columns])))


def _of_batch(rows: DataFrame) -> DataFrame:
    return rows.withColumn(BATCH, F.lit(1).cast("bigint"))
