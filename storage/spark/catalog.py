"""Registers tables of a lake in the catalog of a Spark session: the catalog says by a name where a table lies."""

from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakejoin.storage.errors import CatalogUnusable, reason_of
from lakejoin.transforms.model.schemas import as_literal, quoted

_IMPLEMENTATION = "spark.sql.catalogImplementation"
_OWN = "spark_catalog"
"""The catalog of Spark itself, which is meant where none is named: in memory, or Hive's metastore."""
_PARTS = 3
"""Of a name that begins with a catalog."""


@dataclass(frozen=True)
class CatalogTable:
    """A table of a lake, and the name that the catalog is to have for it."""

    name: str
    """`schema.table` or `catalog.schema.table`."""
    path: str

    @property
    def quoted(self) -> str:
        """The name as SQL takes it."""
        return ".".join(map(quoted, self.name.split(".")))


def check_catalog(spark: SparkSession, table: CatalogTable) -> None:
    """See that a table can be registered: the catalog lasts, and has nothing else by the name.

    Raises `CatalogUnusable`.
    """
    parts = table.name.split(".")
    own = len(parts) < _PARTS or parts[0] == _OWN
    if own and spark.conf.get(_IMPLEMENTATION) == "in-memory":
        raise CatalogUnusable(
            f"{table.name}: the catalog of this session is in memory, and would forget the table; expected one that "
            f"lasts. Set `spark: {{conf: {{{_IMPLEMENTATION}: hive, ...}}}}` with where its metastore is: "
            "`spark.hadoop.hive.metastore.uris` of a server, or `spark.hadoop.javax.jdo.option.ConnectionURL` of a "
            "database"
        )
    try:
        found = _location(spark, table)
    except PySparkException as error:
        raise CatalogUnusable(f"{table.name}: the catalog cannot be asked: {reason_of(error)}") from error
    if found is not None and found != _uri(spark, table.path):
        raise CatalogUnusable(
            f"{table.name}: the catalog has a table of this name at {found}; expected none, or the one at "
            f"{_uri(spark, table.path)}. Give this one another name, or drop that: DROP TABLE {table.quoted}"
        )


def register(spark: SparkSession, table: CatalogTable) -> None:
    """Let the catalog know a table that is there, and its schema where it is new. Raises `CatalogUnusable`."""
    try:
        if spark.catalog.tableExists(table.quoted):
            return
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS {table.quoted.rpartition('.')[0]}")
        place = as_literal(_uri(spark, table.path))
        spark.sql(f"CREATE TABLE IF NOT EXISTS {table.quoted} USING delta LOCATION {place}")
    except PySparkException as error:
        raise CatalogUnusable(f"{table.name}: cannot be registered: {reason_of(error)}") from error


def _location(spark: SparkSession, table: CatalogTable) -> str | None:
    """Where the catalog says that a table lies, or of what format it is if not Delta's; None where it has none."""
    if not spark.catalog.tableExists(table.quoted):
        return None
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {table.quoted}").collect()
    # columns stand first: the last of a name is no column
    told = {row["col_name"]: row["data_type"] for row in rows}
    return (
        told["Location"] if told.get("Provider") == "delta" else f"a place in format {told.get('Provider')}"
    )


def _uri(spark: SparkSession, path: str) -> str:
    """A path as Delta tells the location of a table."""
    jvm = spark._jvm  # noqa: SLF001 - the gateway to the JVM is a private part of PySpark
    assert jvm is not None
    qualified = jvm.org.apache.hadoop.fs.Path(path)
    system = qualified.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())  # noqa: SLF001 - as above
    return str(system.makeQualified(qualified).toString())
