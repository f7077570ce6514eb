r"""Compares a table with a database's csv export: every column of its header, by declared type, in Spark.

The csv is RFC 4180 with a header; null is `\N`, an empty string `""` or nothing; fields may hold line breaks.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import Row, StructField

from lakejoin.storage.errors import LakejoinError
from lakejoin.storage.spark.kept_frames import aggregated
from lakejoin.transforms.model.schemas import named

NULL = r"\N"
EXAMPLES = 5
"""How many differences are described."""


@dataclass(frozen=True)
class Comparison:
    """What came out of comparing a table with its expected rows."""

    name: str
    rows: int
    """Rows that are expected."""
    found: int
    """Rows that the table has."""
    columns: int
    differences: int
    """Cells that differ; a row that is missing or not expected counts as one."""
    examples: tuple[str, ...]
    """The first differences by key, each with key, column and both values."""

    @property
    def equal(self) -> bool:
        """Whether the table is what was expected, in every cell."""
        return self.differences == 0


class NotComparable(LakejoinError):
    """The expected rows have columns that the table lacks, or lack its key."""


def read_expected(spark: SparkSession, path: str) -> DataFrame:
    """Read an exported csv file, gz or plain, with every column as text."""
    rows = spark.read.csv(
        path, header=True, multiLine=True, quote='"', escape='"', nullValue="", emptyValue=""
    )
    # Spark takes an empty field without quotes for null, which PostgreSQL writes for an empty string.
    texts = [F.nullif(F.coalesce(named(name), F.lit("")), F.lit(NULL)).alias(name) for name in rows.columns]
    return rows.select(*texts)


def compare(name: str, table: DataFrame, expected: DataFrame, key: Sequence[str]) -> Comparison:
    """Compare a table with expected rows, whose texts are read as the types of the table's columns.

    Both may hold a key several times: the n-th rows of a key are compared. Raises `NotComparable`.
    """
    wanted = set(expected.columns)
    if lacking := [*(wanted - set(table.columns)), *(set(key) - wanted)]:
        raise NotComparable(
            f"{name}: cannot be compared by {', '.join(sorted(lacking))}: only one side has it"
        )
    columns = [field for field in table.schema if field.name in wanted]
    pairs = (
        _paired(table, expected, columns, key)
        .select("key", "wanted", "found", _differences(columns))
        .persist()
    )
    counted = aggregated(
        pairs,
        F.count("wanted").alias("rows"),
        F.count("found").alias("found"),
        F.coalesce(F.sum(F.size("differences")), F.lit(0)).alias("differences"),
    )
    examples = _examples(pairs) if counted["differences"] else ()
    pairs.unpersist()
    return Comparison(name, counted["rows"], counted["found"], len(columns), counted["differences"], examples)


def _paired(
    table: DataFrame, expected: DataFrame, columns: Sequence[StructField], key: Sequence[str]
) -> DataFrame:
    """Expected and found rows side by side, each as a struct; null where one side has no such row."""
    types = {field.name: field.dataType for field in columns}
    wanted = expected.select(
        F.struct(*[named(name).try_cast(types[name]).alias(name) for name in key]).alias("key"),
        F.struct(*[named(field.name) for field in columns]).alias("wanted"),
    )
    found = table.select(
        F.struct(*[named(name) for name in key]).alias("found_key"),
        F.struct(*[named(field.name) for field in columns]).alias("found"),
    )
    wanted = wanted.withColumn("nth", F.row_number().over(Window.partitionBy("key").orderBy("wanted")))
    found = found.withColumn(
        "found_nth", F.row_number().over(Window.partitionBy("found_key").orderBy("found"))
    )
    same = F.col("key").eqNullSafe(F.col("found_key")) & (F.col("nth") == F.col("found_nth"))
    pairs = wanted.join(found, same, "full_outer")
    return pairs.withColumn("key", F.coalesce("key", "found_key"))


def _differences(columns: Sequence[StructField]) -> Column:
    """What differs: one struct a cell, or one without a column where `wanted` or `found` is no row."""
    cells = F.array(*[F.when(_differs(field), _cell(field.name)) for field in columns])
    alone = F.col("wanted").isNull() | F.col("found").isNull()
    row = F.struct(*[F.lit(None).cast("string").alias(name) for name in ("column", "wanted", "found")])
    return (
        F.when(alone, F.array(row))
        .otherwise(F.filter(cells, lambda cell: cell.isNotNull()))
        .alias("differences")
    )


def _differs(field: StructField) -> Column:
    """Text that is no value of the type differs from everything."""
    text, found = F.col("wanted")[field.name], F.col("found")[field.name]
    value = text.try_cast(field.dataType)
    return ~value.eqNullSafe(found) | (text.isNotNull() & value.isNull())


def _cell(name: str) -> Column:
    return F.struct(
        F.lit(name).alias("column"),
        F.col("wanted")[name].alias("wanted"),
        F.col("found")[name].cast("string").alias("found"),
    )


def _examples(pairs: DataFrame) -> tuple[str, ...]:
    cells = pairs.select(
        "key", F.col("wanted").isNull().alias("extra"), F.explode("differences").alias("cell")
    ).orderBy("key", F.col("cell")["column"])
    return tuple(_described(row) for row in cells.limit(EXAMPLES).collect())


def _described(row: Row) -> str:
    where = ", ".join(f"{name} {value}" for name, value in row["key"].asDict().items())
    column, wanted, found = row["cell"]
    if column is None:
        return f"{where}: {'not expected, but there' if row['extra'] else 'expected, but missing'}"
    return f"{where}: {column} is {_quoted(found)}, expected {_quoted(wanted)}"


def _quoted(value: str | None) -> str:
    return "null" if value is None else repr(value)
