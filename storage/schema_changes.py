"""Columns of tables that are there: which they have, and more of them."""

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from storage.frames import empty


def columns_of(spark: SparkSession, path: str) -> dict[str, str]:
    """Return the types of a table's columns by name, as Spark writes them."""
    schema = spark.read.format("delta").load(path).schema
    return {field.name: field.dataType.simpleString() for field in schema}


def add_columns(spark: SparkSession, path: str, columns: StructType) -> list[str]:
    """Give a table those of the columns that it does not have; return their names. Its rows have null there."""
    known = columns_of(spark, path)
    new = StructType([field for field in columns if field.name not in known])
    if new.names:
        writer = empty(spark, new).write.format("delta").mode("append").option("mergeSchema", "true")
        writer.save(path)
    return new.names
