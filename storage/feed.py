"""The Change Data Feed of a Delta table as records: an insert is c, the later half of an update u, a delete d.

Some commits have the feed written beside their data; of the others Delta derives it from the files that came and went.
There an update is a delete and an insert of one key in one version. So what went of a key in a version, be it a delete
or the earlier half of an update, is a delete only if nothing of that key came in the same version: else it is what was
replaced, and no record. An update that changes the key is a delete of the old one and an upsert of the new one.

A position has no date, the version (20 digits, as Delta's log names it) in place of a file, and as line the number of
the record among those of its key in that version: one, unless the table has several rows with the key. In streams and
versioned tables, where records of all keys move one clock, it is the number among all of the version, by their time.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession, Window, WindowSpec
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from storage.feed_log import NOTHING
from storage.line_numbers import FileRange
from transforms.parsing import ParseOptions
from transforms.parsing_flat import parse_rows
from transforms.schemas import CONTEXT, POSITION, POSITION_TYPE, named
from transforms.specs import TableSpec

_OP, _VERSION, _LINE = "_lj_feed_op", "_lj_feed_version", "_lj_feed_line"
_OPS = {"insert": "c", "update_postimage": "u", "update_preimage": "d", "delete": "d"}
_DIGITS = 20


def parse_feed(
    spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Sequence[FileRange]
) -> list[DataFrame]:
    """Read ranges of versions, of which one from `NOTHING` on is the whole table, into records."""
    return [_records(_rows(spark, part), table, options) for part in ranges]


def _rows(spark: SparkSession, part: FileRange) -> DataFrame:
    """The rows of a range with what each does and the version that did it."""
    reader = spark.read.format("delta")
    if part.from_line == NOTHING:
        state = reader.option("versionAsOf", part.to_line).load(part.path)
        return state.withColumns({_OP: F.lit("c"), _VERSION: F.lit(part.to_line).cast("bigint")})
    versions = {"startingVersion": part.from_line + 1, "endingVersion": part.to_line}
    feed = reader.options(readChangeFeed=True, **versions).load(part.path)
    known = F.create_map(*[F.lit(text) for pair in _OPS.items() for text in pair])
    return feed.withColumns({_OP: known[F.col("_change_type")], _VERSION: F.col("_commit_version")})


def _records(rows: DataFrame, table: TableSpec, options: ParseOptions) -> DataFrame:
    types = {field.name: field.dataType for field in rows.schema if field.name in table.columns.names}
    # a joined table has internal columns of its own, of which none may meet ours
    rows = rows.select(*[named(name) for name in types], _OP, _VERSION)
    key = [named(name) for name in table.key if name in types]
    of_key = Window.partitionBy(_VERSION, *key)
    content = [_orderable(named(name), dtype) for name, dtype in types.items()]
    in_order = of_key.orderBy(*content)
    if table.max_future is not None:
        time = [named(table.event_time)] if table.event_time in types else []
        in_order = Window.partitionBy(_VERSION).orderBy(*time, *key, *content)
    placed = _placed(_without_replaced(rows, of_key), in_order)
    row = F.struct(F.col(_OP).alias("op"), *[named(name) for name in types])
    raw = F.to_json(row, {"ignoreNullFields": "false"})
    columns = {name: (named(name), dtype) for name, dtype in types.items()}
    return parse_rows(placed, table, options, columns, raw, op=F.col(_OP))


def _without_replaced(rows: DataFrame, of_key: WindowSpec) -> DataFrame:
    """Leave out what went of a key in a version that brought it back."""
    is_delete, came = F.col(_OP) == "d", "_lj_feed_came"
    kept = rows.withColumn(came, F.bool_or(~is_delete).over(of_key)).where(~is_delete | ~F.col(came))
    return kept.drop(came)


def _placed(rows: DataFrame, in_order: WindowSpec) -> DataFrame:
    """Give each row its position."""
    line = F.row_number().over(in_order).cast("bigint")
    version = F.lpad(F.col(_VERSION).cast("string"), _DIGITS, "0")
    place = F.struct(
        F.lit(None).cast("date").alias("date"), version.alias("file"), F.col(_LINE).alias("line")
    )
    return rows.withColumn(_LINE, line).withColumns(
        {POSITION: place.cast(POSITION_TYPE), CONTEXT: F.lit(False)}
    )


def _orderable(value: Column, dtype: DataType) -> Column:
    return F.to_json(F.struct(value)) if _has_map(dtype) else value


def _has_map(dtype: DataType) -> bool:
    """Whether there is a map in it, which Spark cannot order."""
    if isinstance(dtype, ArrayType):
        return _has_map(dtype.elementType)
    if isinstance(dtype, StructType):
        return any(_has_map(field.dataType) for field in dtype)
    return isinstance(dtype, MapType)
