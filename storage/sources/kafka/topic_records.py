"""Reads records of topics by Spark's own source of Kafka, each as a line of text that the parsers know.

A range of offsets may have fewer records: Kafka keeps offsets for the marks of transactions, and of a compacted topic
it drops what a newer record of its key replaced.
"""

import json
from collections.abc import Mapping, Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StringType, StructType

from lakejoin.storage.errors import SourceUnreadable
from lakejoin.storage.sources.kafka.topics import Topics, partition_of, spark_options
from lakejoin.storage.sources.planned.planned_file import PlannedFile
from lakejoin.transforms.model.schemas import CONTEXT, POSITION, POSITION_TYPE, RAW, empty
from lakejoin.transforms.parsing.row_ops import RowOp

KEY, VALUE = "_lj_record_key", "_lj_record_value"
"""Columns with the key and value of a record: bytes, or text."""
_SPLIT = 200_000
"""From so many records on partitions are read by several tasks."""
_OBJECT = r'^\s*+\{\s*+"'
"""Begins an object with a member."""


def read_topics(
    spark: SparkSession, topics: Topics, ranges: Sequence[PlannedFile], begins: Mapping[str, int]
) -> DataFrame:
    """Read ranges of offsets: position, context, key, value.

    `begins`: the first offset that each partition still has, by the name of the part. The record before a range is
    context, if it is there.
    """
    wanted = [part for part in ranges if part.records]
    schema = StructType().add(POSITION, POSITION_TYPE).add(CONTEXT, BooleanType())
    if not wanted:
        return empty(spark, schema.add(KEY, "binary").add(VALUE, "binary"))
    starts, ends = dict[str, dict[str, int]](), dict[str, dict[str, int]]()
    for part in wanted:
        topic, partition = partition_of(part)
        before = part.from_line - 1
        start = before if before >= begins.get(part.name, part.from_line) else part.from_line
        starts.setdefault(topic, {})[str(partition)] = start
        ends.setdefault(topic, {})[str(partition)] = part.to_line
    options = spark_options(topics) | {
        "assign": json.dumps({topic: [*map(int, numbers)] for topic, numbers in starts.items()}),
        "startingOffsets": json.dumps(starts),
        "endingOffsets": json.dumps(ends),
    }
    if sum(part.records for part in wanted) > _SPLIT:
        options["minPartitions"] = str(max(spark.sparkContext.defaultParallelism, len(wanted)))
    scan = _scan(spark, options)
    name = F.concat(F.col("topic"), F.lit("+"), F.lpad(F.col("partition").cast("string"), 5, "0"))
    # in one text, as code that says offsets would be compiled anew for each batch
    froms = F.from_json(
        F.lit(json.dumps({part.name: part.from_line for part in wanted})), "map<string,bigint>"
    )
    position = F.struct(
        F.lit(None).cast("date").alias("date"), name.alias("file"), (F.col("offset") + 1).alias("line")
    )
    return scan.select(
        position.cast(POSITION_TYPE).alias(POSITION),
        (F.col("offset") < froms[name]).alias(CONTEXT),
        F.col("key").alias(KEY),
        F.col("value").alias(VALUE),
    )


def _scan(spark: SparkSession, options: Mapping[str, str]) -> DataFrame:
    try:
        return spark.read.format("kafka").options(**options).load()
    except AnalysisException as error:
        if "data source: kafka" not in str(error):
            raise
        raise SourceUnreadable(
            "the Spark session was started without the JARs that read Kafka, by a pipeline that has no topics; JARs "
            "cannot be added later. Run this pipeline in a process of its own"
        ) from error


def event_lines(records: DataFrame) -> DataFrame:
    """Write events (position, context, key, value) as lines: position, context, raw.

    The key stands as text within the value, which stays as it is written, or beside a value that is no object.
    """
    key, value = F.col(KEY).cast("string"), F.col(VALUE).cast("string")
    beside = F.rtrim(F.to_json(F.struct(key.alias("key"))), F.lit("}"))
    within = F.concat(beside, F.lit(","), F.substr(F.ltrim(value), F.lit(2)))
    is_object = value.rlike(_OBJECT)
    whole = F.to_json(F.struct(key.alias("key"), value.alias("value")), {"ignoreNullFields": "false"})
    line = F.when(is_object & key.isNotNull(), within).when(is_object, value).otherwise(whole)
    return records.select(POSITION, CONTEXT, line.alias(RAW))


def row_lines(records: DataFrame, row_op: RowOp) -> DataFrame:
    """Write rows (position, context, key, value) as lines: position, context, raw.

    A record without a value deletes the row that its key names by its members, if rows lie where a member can be added
    that says so; else it is nothing.
    """
    key, value = F.col(KEY).cast("string"), F.col(VALUE).cast("string")
    wrapped = F.get_json_object(key, "$.payload")
    key = F.when(wrapped.startswith("{"), wrapped).otherwise(key)
    line = F.coalesce(value, _delete(key, row_op), F.lit("null"))
    return records.select(POSITION, CONTEXT, line.alias(RAW))


def _delete(key: Column, row_op: RowOp) -> Column:
    """The line that deletes the row of a key, null where it cannot be said."""
    if row_op.row is not None or "." in row_op.columns[-1]:
        return F.lit(None).cast(StringType())
    said = {row_op.flag: "true"} if row_op.flag is not None else {row_op.column: [*row_op.delete, "d"][0]}
    member = json.dumps(said)[1:-1]
    return F.when(key.rlike(_OBJECT), F.concat(F.lit(f"{{{member},"), F.substr(F.ltrim(key), F.lit(2))))
