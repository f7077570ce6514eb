"""Whole logs of a lake, as far as a cut reaches."""

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from storage.delta_table.direct_scan import read_table
from storage.lake.layout import changes_of
from storage.spark.kept_frames import empty
from storage.state.pinned_state import State
from transforms.changelog.replaced_files import replaced
from transforms.model.schemas import changes_schema
from transforms.model.specs import TableSpec


def read_log(state: State, table: str, schema: StructType) -> DataFrame:
    """Return the columns of `schema` of a log at the version that the cut pins; no rows without a log."""
    version = state.plan.versions.get(table)
    if version is None:
        return empty(state.spark, schema)
    return read_table(state.spark, state.lake.path(table), version, schema)


def known_changes(state: State, table: TableSpec, replaced_in: Mapping[str, int]) -> DataFrame:
    """Return what is known of a table's records, apart from files that were replaced since.

    `replaced_in`: those files by name, with the last batch that replaced each.
    """
    log = read_log(state, changes_of(table.name), changes_schema(table.columns, table.sequence))
    return log.where(~replaced(replaced_in))
