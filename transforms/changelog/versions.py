"""Keeps the history of a versioned table: which value a key had when (KIP-889, KIP-923).

A version is valid from its time until the next version of its key; a tombstone is a version, too. The log of changes
holds every version that was ever accepted. A fold turns them into intervals, and drops what no as-of read can reach.
"""

from datetime import datetime

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType, TimestampType

from lakejoin.transforms.model.event_time import instant
from lakejoin.transforms.model.schemas import (
    BATCH,
    DELETED,
    HASH,
    MET_HASH,
    MET_VALUE,
    OP,
    POSITION,
    SEQUENCE,
    TIME,
    VALID_FROM,
    VALID_TO,
    VALIDITY,
    VERDICT,
    named,
    rows_schema,
)
from lakejoin.transforms.model.specs import TableSpec

_LATEST, _LAST = "_lj_latest", "_lj_last"


def versions_schema(table: TableSpec) -> StructType:
    """Schema of `tables/T/versions`: a validity interval of a key; `DELETED` where the key did not exist in it."""
    rows = [f for f in rows_schema(table.columns, table.sequence) if f.name != TIME]
    return StructType([*rows, *[StructField(name, TimestampType()) for name in VALIDITY]])


def is_version() -> Column:
    """Which rows of a table's changes entered its history."""
    return F.col(VERDICT).isin("applied", "history") & (F.col(OP) != "truncate")


def as_versions(changes: DataFrame, columns: list[str]) -> DataFrame:
    """Changes that entered the history, as rows of `versions_schema` that do not know yet when they end.

    A duplicate is one of them: as with a key's row, it moves the version to the position where it stands.
    """
    found = changes.where(is_version() | (F.col(VERDICT) == "duplicate")).withColumns(
        {VALID_FROM: F.col(TIME), VALID_TO: F.lit(None).cast("timestamp")}
    )
    return found.select(*[named(name) for name in columns])


def intervals(versions: DataFrame, table: TableSpec) -> DataFrame:
    """Versions with their ends; of several with the same key and time the last in order stays.

    `versions`: columns of `versions_schema`, from a folded base and the changes behind it.
    """
    key = [named(name) for name in table.key]
    columns = [name for name in versions.columns if name not in (*table.key, VALID_FROM)]
    last = F.max_by(F.struct(*[named(name) for name in columns]), F.struct(SEQUENCE, POSITION)).alias(_LAST)
    chosen = versions.groupBy(*key, VALID_FROM).agg(last)
    unpacked = chosen.select(
        *[named(n) if n in (*table.key, VALID_FROM) else F.col(_LAST)[n].alias(n) for n in versions.columns]
    )
    following = F.lead(VALID_FROM).over(Window.partitionBy(*key).orderBy(VALID_FROM))
    return unpacked.withColumn(VALID_TO, following).select(*versions.columns)


def reachable(versions: DataFrame, since: datetime | None) -> DataFrame:
    """The intervals that an as-of read from `since` on may ask for; a key's last value always stays, if it has one."""
    if since is None:
        return versions
    bound = instant(since)
    gone = F.col(DELETED) & (F.col(VALID_FROM) < bound) & F.col(VALID_TO).isNull()
    return versions.where((F.col(VALID_TO).isNull() | (F.col(VALID_TO) > bound)) & ~gone)


def as_of(
    records: DataFrame, versions: DataFrame, key: Column, time: Column, table: TableSpec, bound: datetime | None,
) -> DataFrame:  # fmt: skip
    """Put beside each record the value that its key had at its time, as `MET_HASH` and `MET_VALUE` (null: none).

    `key`: a record's foreign key, a struct of the table's key columns; `time`: when to look. `versions`: columns of
    `versions_schema`, at least those of the records' keys. `bound`: the table's clock less its retention: before
    it, only a key's last version answers, for others may be gone already (SEMANTICS of Kafka's versioned stores).

    Both sides are sorted together, so the cost follows their sizes, however many versions a key has.
    """
    asked = records.select(
        key.alias("as_of_key"),
        time.alias("as_of_time"),
        F.struct(*map(named, records.columns)).alias("record"),
    )
    value = F.struct(*[named(name).alias(name) for name in table.columns.names])
    known = versions.select(
        F.struct(*[named(name).alias(name) for name in table.key]).alias("as_of_key"),
        F.col(VALID_FROM).alias("as_of_time"),
        F.struct(
            F.col(VALID_FROM).alias("since"),
            F.when(~F.col(DELETED), F.col(HASH)).alias("hash"),
            F.when(~F.col(DELETED), value).alias("value"),
            F.struct(SEQUENCE, POSITION).alias("order"),
        ).alias("version"),
    )
    both = asked.unionByName(known, allowMissingColumns=True)
    by_key = Window.partitionBy("as_of_key")
    # at the same time the version comes first: valid_from is inclusive
    order = [F.col("as_of_time"), F.col("record").isNotNull(), F.col("version")["order"]]
    met = F.last("version", ignorenulls=True).over(
        by_key.orderBy(*order).rowsBetween(Window.unboundedPreceding, 0)
    )
    found = both.withColumns({"met": met, _LATEST: F.max(F.col("version")["since"]).over(by_key)})
    kept = F.lit(True)
    if bound is not None:
        kept = (F.col("as_of_time") >= instant(bound)) | (F.col("met")["since"] == F.col(_LATEST))
    answers = found.where(F.col("record").isNotNull())
    return answers.select(
        "record.*",
        F.when(kept, F.col("met")["hash"]).alias(MET_HASH),
        F.when(kept, F.col("met")["value"]).alias(MET_VALUE),
    )


def last_by_time(versions: DataFrame, table: TableSpec) -> DataFrame:
    """The accepted version at each key and time: what a later record with the same time is compared with."""
    key = [named(name) for name in table.key]
    rest = [n for n in (BATCH, POSITION, SEQUENCE, HASH, DELETED) if n in versions.columns]
    last = F.max_by(F.struct(*rest), F.struct(SEQUENCE, POSITION)).alias(_LAST)
    return versions.groupBy(*key, F.col(VALID_FROM).alias(TIME)).agg(last).select(*key, TIME, f"{_LAST}.*")
