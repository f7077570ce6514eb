"""Whole logs of a lake, as far as a cut reaches."""

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from storage.data_files import read_table
from storage.frames import empty
from storage.state import State


def read_log(state: State, table: str, schema: StructType) -> DataFrame:
    """Return the columns of `schema` of a log at the version that the cut pins; no rows without a log."""
    version = state.plan.versions.get(table)
    if version is None:
        return empty(state.spark, schema)
    return read_table(state.spark, state.lake.path(table), version, schema)
