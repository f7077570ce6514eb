"""Holds the file of settings of Spark SQL against Spark's own list."""

import pytest
from pyspark.sql import SparkSession

from lakejoin.storage.spark.start import SETTINGS
from lakejoin.transforms.model import sql_settings
from lakejoin.transforms.model.sql_settings import PINNED, PREFIX, filed

CHANGED = {
    "spark.sql.variable.substitute",
    "spark.sql.catalog.spark_catalog",
    "spark.sql.lateralColumnAlias.enableImplicitResolution",
    "spark.sql.parquet.outputTimestampType",
}
"""Pinned settings whose default is another value."""


@pytest.fixture(scope="module")
def registered(spark: SparkSession) -> dict[str, str]:
    """Every setting of Spark SQL with its default, those that `SET -v` leaves out included."""
    jvm = spark._jvm
    assert jvm is not None
    module = getattr(jvm.org.apache.spark.sql.internal, "SQLConf$").__getattr__("MODULE$")
    every = jvm.java.util.ArrayList(module.getConfigEntries())
    entries = {entry.key(): entry.defaultValueString() for entry in every}
    listed = {row["key"] for row in spark.sql("SET -v").collect()}
    return {name: entries.get(name, "") for name in entries.keys() | listed if name.startswith(PREFIX)}


@pytest.mark.spark
def test_every_setting_is_filed(registered: dict[str, str]) -> None:
    """A setting that a new version of Spark brings is looked at before that version is used."""
    assert [name for name in registered if filed(name) is None] == []


@pytest.mark.spark
def test_no_pattern_is_left_over(registered: dict[str, str]) -> None:
    """What is filed exists: a pattern that fits nothing is a mistyped one, or of an older Spark."""
    patterns = {pattern for names, _ in sql_settings._LISTS for pattern in names}
    fits = {p: any(n.startswith(p[:-1]) if p.endswith("*") else n == p for n in registered) for p in patterns}

    assert [pattern for pattern, fitting in fits.items() if not fitting] == []
    assert PINNED.keys() - registered.keys() == set()


@pytest.mark.spark
def test_pinned_settings_are_mostly_defaults(registered: dict[str, str]) -> None:
    """So a lake made before they were pinned was made with them, but for those that are known."""
    assert {name for name, value in PINNED.items() if registered[name] != value} == CHANGED


@pytest.mark.spark
def test_session_has_what_is_pinned(spark: SparkSession) -> None:
    """Each name is one that Spark takes in a session."""
    assert {name: spark.conf.get(name) for name in PINNED} == dict(PINNED)


def test_each_setting_of_ours_is_filed() -> None:
    """What the session sets beside the pinned ones is the user's to set otherwise."""
    ours = {name for name in SETTINGS if name.startswith(PREFIX)} - PINNED.keys()

    assert {filed(name) for name in ours} == {"harmless"}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("spark.sql.parquet.compression.codec", "harmless"),
        ("spark.sql.parquet.mergeSchema", "refused"),
        ("spark.sql.parquet.binaryAsString", "pinned"),
        ("spark.sql.legacy.timeParserPolicy", "pinned"),
        ("spark.sql.legacy.brandNew", "refused"),
        ("spark.sql.execution.pythonUDF.arrow.enabled", "harmless"),
        ("spark.sql.execution.pythonUDF.arrow.legacy.fallbackOnUDT", "refused"),
        ("spark.sql.variable.substitutes", None),
        ("spark.sql.catalog.mine.uri", "harmless"),
        ("spark.sql.catalog.spark_catalog.uri", "refused"),
    ],
)
def test_longest_pattern_decides(name: str, kind: str | None) -> None:
    """A whole name, or the pattern that says more of it, goes before one that says less."""
    assert filed(name) == kind
