"""Reads the columns of existing tables, adds columns to them, and widens types."""

import json
from collections.abc import Iterator

from deltalake import DeltaTable
from pyspark.sql import Column, SparkSession
from pyspark.sql.types import DataType, StructType

from lakejoin.storage.delta_log.transaction_id import Transaction
from lakejoin.storage.delta_table.commits import overwrite
from lakejoin.transforms.model.schemas import absent, empty, named, quoted
from lakejoin.transforms.parsing.schema_drift import widens


def schema_of(table: DeltaTable) -> StructType:
    """Return the columns of a table."""
    return StructType.fromJson(json.loads(table.schema().to_json()))


def take_columns(
    spark: SparkSession, path: str, columns: StructType, anew: Transaction | None = None
) -> tuple[list[str], list[str]]:
    """Give a table those of the columns that it does not have, and wider types, those within structs too.

    All of it in one commit. Rows have null in new columns. No file is written again: for wider types the table gets
    Delta's feature (Delta protocol, "Type Widening"), which few other readers know. `anew`: write its rows again
    instead. Returns which columns are new, and what each wider one was made, as `name type`.
    """
    known = spark.read.format("delta").load(path).schema
    new = [field for field in columns if field.name not in known.names]
    grown = [f for f in columns if f in new or any(wider_columns(known, StructType([f])))]
    wider = dict(wider_columns(known, columns))
    if wider and anew is not None:
        rows = spark.read.format("delta").load(path)
        kept = [_as(name, columns) for name in rows.columns]
        overwrite(rows.select(*kept, *[absent(field.name, field.dataType) for field in new]), path, anew)
    elif grown:
        if wider:  # a commit of its own, which changes no column
            feature = "SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
            spark.sql(f"ALTER TABLE delta.{quoted(path)} {feature}")
        writer = empty(spark, StructType(grown)).write.format("delta").mode("append")
        writer.option("mergeSchema", "true").save(path)
    told = [f"{name.replace('`', '')} {dtype.simpleString()}" for name, dtype in wider.items()]
    return [field.name for field in new], told


def _as(name: str, columns: StructType) -> Column:
    return named(name).cast(columns[name].dataType).alias(name) if name in columns.names else named(name)


def wider_columns(known: StructType, wanted: StructType, within: str = "") -> Iterator[tuple[str, DataType]]:
    """Yield the columns that are wider than what is known of them: names, with those of structs around them, and types.

    Each part of a name is quoted.
    """
    for field in wanted:
        if field.name not in known.names:
            continue
        name, found = within + quoted(field.name), known[field.name].dataType
        if isinstance(found, StructType) and isinstance(field.dataType, StructType):
            yield from wider_columns(found, field.dataType, f"{name}.")
        elif widens(found, field.dataType):
            yield name, field.dataType
