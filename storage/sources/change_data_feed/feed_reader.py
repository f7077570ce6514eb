"""Reads the Change Data Feed of a Delta table as records: inserts as c, updates as u, deletes as d.

Some commits have the feed written beside their data. For the others Delta derives it from the files that came and went;
an update is then a delete and an insert of one key in one version. So what went of a key in a version, as a delete or
as the earlier half of an update, is a delete only if nothing of that key came in the same version. Otherwise it was
replaced, and gives no record. An update that changes the key is a delete of the old one and an upsert of the new one.
In a stream each record is an event, so a row that went and came in the same version gives none: nothing happened.

A position has no date. In place of a file name it has the version (20 digits, as Delta's log names it), and as line the
number of the record among those of its key in that version: 1, unless the table has several rows with the key. In
streams and versioned tables, where records of all keys move one clock, it is the number among all records of the
version, by time.
"""

from collections.abc import Iterator, Sequence

from pyspark.sql import Column, DataFrame, SparkSession, Window, WindowSpec
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    AtomicType,
    DataType,
    DateType,
    DecimalType,
    IntegralType,
    MapType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from lakejoin.storage.sources.change_data_feed.feed_log import NOTHING
from lakejoin.storage.sources.change_data_feed.feed_schema import Span, spans
from lakejoin.storage.sources.planned.planned_file import PlannedFile
from lakejoin.transforms.model.schemas import CONTEXT, POSITION, POSITION_TYPE, named
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing.flat_rows import take_rows_apart
from lakejoin.transforms.parsing.options import ParseOptions
from lakejoin.transforms.parsing.validation import finish_records

_OP, _VERSION, _LINE, _SURPLUS = "_lj_feed_op", "_lj_feed_version", "_lj_feed_line", "_lj_feed_surplus"
_OPS = {"insert": "c", "update_postimage": "u", "update_preimage": "d", "delete": "d"}
_DIGITS = 20
_NUMBERS, _TIMES = (NumericType,), (DateType, TimestampType, TimestampNTZType)


def parse_feed(
    spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Sequence[PlannedFile]
) -> list[DataFrame]:
    """Read ranges of versions, of which one from `NOTHING` on is the whole table, into records.

    Where columns change within a range there is a frame for either side. Raises `SourceError` for what is gone.
    """
    return [_records(rows, table, options) for part in ranges for rows in _parts(spark, table, part)]


def _parts(spark: SparkSession, table: TableSpec, part: PlannedFile) -> Iterator[DataFrame]:
    """The declared columns of a range, as far as it has them, with what each row does and the version that did it."""
    if part.from_line == NOTHING:
        yield _declared(_doing("c", state_of(spark, part.path, part.to_line), part.to_line), table)
        return
    for span in spans(part.path, part.from_line, part.to_line):
        read = _written_anew if span.anew else _changes
        rows = _declared(read(spark, part.path, span), table)
        yield _without_returned(rows) if table.append_only and span.replaces else rows


def _declared(rows: DataFrame, table: TableSpec) -> DataFrame:
    # a joined table has internal columns of its own, of which none may meet ours
    names = [name for name in rows.columns if name in table.as_written.columns.names]
    return rows.select(*map(named, names), _OP, _VERSION)


def _changes(spark: SparkSession, path: str, span: Span) -> DataFrame:
    versions = {"startingVersion": span.after + 1, "endingVersion": span.through}
    # by default Delta reads every version with the columns of the newest, which may be none of the range
    reader = spark.read.format("delta").options(readChangeFeed=True, versionAsOf=span.through, **versions)
    known = F.create_map(*[F.lit(text) for pair in _OPS.items() for text in pair])
    return reader.load(path).withColumns(
        {_OP: known[F.col("_change_type")], _VERSION: F.col("_commit_version")}
    )


def _written_anew(spark: SparkSession, path: str, span: Span) -> DataFrame:
    """All rows before a version as what went, all rows of it as what came, by the types of the latter or wider ones."""
    version = span.through
    came, went = state_of(spark, path, version), state_of(spark, path, version - 1)
    types = {field.name.lower(): field.dataType for field in came.schema}
    cast = [_as(field, types.get(field.name.lower(), field.dataType)) for field in went.schema]
    rows = _doing("d", went.select(*cast), version)
    return _doing("c", came, version).unionByName(rows, allowMissingColumns=True)


def _as(field: StructField, wanted: DataType) -> Column:
    """A column by another type, null where there is nothing of it; what is gone is only asked for its key."""
    found, value = field.dataType, named(field.name)
    exact = all(isinstance(dtype, (IntegralType, DecimalType)) for dtype in (found, wanted))
    if exact or found.simpleString() == wanted.simpleString():
        return value  # the union takes the wider of two
    cast = value.try_cast(wanted) if _is_castable(found, wanted) else F.lit(None).cast(wanted)
    return cast.alias(field.name)


def _is_castable(*pair: DataType) -> bool:
    if any(isinstance(dtype, StringType) for dtype in pair):
        return all(isinstance(dtype, AtomicType) for dtype in pair)
    return any(all(isinstance(dtype, kinds) for dtype in pair) for kinds in (_NUMBERS, _TIMES))


def state_of(spark: SparkSession, path: str, version: int) -> DataFrame:
    """Return the rows of a table at a version."""
    return spark.read.format("delta").option("versionAsOf", version).load(path)


def _doing(op: str, rows: DataFrame, version: int) -> DataFrame:
    return rows.withColumns({_OP: F.lit(op), _VERSION: F.lit(version).cast("bigint")})


def _records(rows: DataFrame, table: TableSpec, options: ParseOptions) -> DataFrame:
    types = {field.name: field.dataType for field in rows.schema if field.name not in (_OP, _VERSION)}
    written = table.as_written
    key = [named(name) for name in written.key if name in types]
    of_key = Window.partitionBy(_VERSION, *key)
    content = [_orderable(named(name), dtype) for name, dtype in types.items()]
    in_order = of_key.orderBy(*content)
    if table.max_future is not None:
        time = [named(written.event_time)] if written.event_time in types else []
        in_order = Window.partitionBy(_VERSION).orderBy(*time, *key, *content)
    placed = _placed(_without_replaced(rows, of_key), in_order)
    row = F.struct(F.col(_OP).alias("op"), *[named(name) for name in types])
    raw = F.to_json(row, {"ignoreNullFields": "false"})
    columns = {name: (named(name), dtype) for name, dtype in types.items()}
    return finish_records(take_rows_apart(placed, table, options, columns, raw, op=F.col(_OP)), table)


def _without_returned(rows: DataFrame) -> DataFrame:
    """Leave out rows that came as they went in the same version, each as often as it did both."""
    row = [named(name) for name in rows.columns if name != _OP]
    is_delete = F.col(_OP) == "d"
    surplus, op = F.sum(F.when(is_delete, -1).otherwise(1)), F.max(F.when(~is_delete, F.col(_OP)))
    left = rows.groupBy(*row).agg(surplus.alias(_SURPLUS), op.alias(_OP)).where(F.col(_SURPLUS) != 0)
    does = F.when(F.col(_SURPLUS) < 0, F.lit("d")).otherwise(F.col(_OP))
    copies = F.array_repeat(does, F.abs(_SURPLUS).cast("int"))
    return left.select(*row, F.explode(copies).alias(_OP))


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
