"""Columns of tables that are there: which they have, more of them, and wider ones."""

import json
from collections.abc import Iterator

from deltalake import DeltaTable
from pyspark.sql import Column, SparkSession
from pyspark.sql.types import DataType, StructType

from storage.commits import overwrite
from storage.frames import empty
from storage.transaction import Transaction
from transforms.schema_drift import widens
from transforms.schemas import named, quoted


def schema_of(table: DeltaTable) -> StructType:
    """Return the columns of a table."""
    return StructType.fromJson(json.loads(table.schema().to_json()))


def add_columns(spark: SparkSession, path: str, columns: StructType) -> list[str]:
    """Give a table those of the columns that it does not have; return their names. Its rows have null there."""
    known = spark.read.format("delta").load(path).columns
    new = StructType([field for field in columns if field.name not in known])
    if new.names:
        writer = empty(spark, new).write.format("delta").mode("append").option("mergeSchema", "true")
        writer.save(path)
    return new.names


def widen_columns(
    spark: SparkSession, path: str, columns: StructType, anew: Transaction | None = None
) -> list[str]:
    """Give columns of a table, those within structs too, the types they have here where these are wider.

    No file is written again: the table gets Delta's feature for that (Delta protocol, "Type Widening"), which few other
    readers know. `anew`: write its rows again instead, in one commit. Returns what each was made, as `name type`.
    """
    wider = dict(_wider(spark.read.format("delta").load(path).schema, columns))
    if wider and anew is not None:
        rows = spark.read.format("delta").load(path)
        cast = [wider.get(quoted(name)) for name in rows.columns]
        overwrite(rows.select(*map(_as, rows.columns, cast)), path, anew)
    elif wider:
        table = f"delta.{quoted(path)}"
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
        for name, dtype in wider.items():
            spark.sql(f"ALTER TABLE {table} ALTER COLUMN {name} TYPE {dtype.simpleString()}")
    return [f"{name.replace('`', '')} {dtype.simpleString()}" for name, dtype in wider.items()]


def _as(name: str, dtype: DataType | None) -> Column:
    return named(name) if dtype is None else named(name).cast(dtype).alias(name)


def _wider(known: StructType, wanted: StructType, within: str = "") -> Iterator[tuple[str, DataType]]:
    """Names, quoted and with those of the structs around them, and types."""
    for field in wanted:
        if field.name not in known.names:
            continue
        name, found = within + quoted(field.name), known[field.name].dataType
        if isinstance(found, StructType) and isinstance(field.dataType, StructType):
            yield from _wider(found, field.dataType, f"{name}.")
        elif widens(found, field.dataType):
            yield name, field.dataType
