"""Whole logs of a lake, as far as a cut reaches."""

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from storage.frames import empty
from storage.state import State
from transforms.schemas import named


def read_log(state: State, table: str, schema: StructType) -> DataFrame:
    """Return the columns of `schema` of a log at the version that the cut pins; no rows without a log."""
    version = state.plan.versions.get(table)
    if version is None:
        return empty(state.spark, schema)
    reader = state.spark.read.format("delta").option("versionAsOf", version)
    return reader.load(state.lake.path(table)).select(*[named(name) for name in schema.names])
