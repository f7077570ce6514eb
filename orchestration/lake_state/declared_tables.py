"""Keeps tables of results as the file declares them, and registers them in the catalog."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

from pyspark.sql import SparkSession

from lakejoin.orchestration.config import Pipeline, StreamJoin
from lakejoin.storage.delta_table.alignment import align
from lakejoin.storage.lake.layout import Lake, history_of, joined_of
from lakejoin.storage.spark.catalog import CatalogTable, check_catalog, register
from lakejoin.storage.state.joined_table import OF_HISTORIES, OF_STREAMS, PROPERTIES, declared_properties
from lakejoin.transforms.model.declaration import UNDECLARED, Declaration


@dataclass(frozen=True)
class DeclaredTable:
    """A table of which the file says how it is kept."""

    name: str
    """Below the lake."""
    declared: Declaration
    usual: Mapping[str, str]
    """The properties that such a table has by default."""

    def named_in_catalog(self, lake: Lake) -> CatalogTable | None:
        """The table by its name in the catalog; None where it has none."""
        return (
            None if self.declared.table is None else CatalogTable(self.declared.table, lake.path(self.name))
        )


def declared_tables(pipeline: Pipeline) -> Iterator[DeclaredTable]:
    """Yield the tables of results, and of their histories, of which the file says how they are kept."""
    for name, join in pipeline.joins.items():
        usual = OF_STREAMS if isinstance(join, StreamJoin) else PROPERTIES
        for table in (
            DeclaredTable(joined_of(name), join.declared, usual),
            DeclaredTable(history_of(name), join.declared_history, OF_HISTORIES),
        ):
            if table.declared != UNDECLARED:
                yield table


def check_catalogs(pipeline: Pipeline, spark: SparkSession) -> None:
    """See before a batch is planned that the catalog can have the tables that it is to. Raises `CatalogUnusable`."""
    lake = Lake(pipeline.lake)
    for table in declared_tables(pipeline):
        if (registered := table.named_in_catalog(lake)) is not None:
            check_catalog(spark, registered)


def keep_as_declared(
    pipeline: Pipeline, spark: SparkSession, lake: Lake, stage: Callable[[str], AbstractContextManager[None]]
) -> None:
    """Bring each table that is there in line, and register it; before its batch is published, so that none is left out.

    `stage`: what runs meanwhile is called so. Raises `CatalogUnusable`.
    """
    for table in declared_tables(pipeline):
        if not lake.has(table.name):
            continue
        with stage(f"materialized/{table.name}"):
            properties = declared_properties(table.usual, table.declared)
            align(spark, lake.path(table.name), table.declared, properties)
            if (registered := table.named_in_catalog(lake)) is not None:
                register(spark, registered)
