"""Asks a database for rows by Spark's own source of JDBC, and writes what it answers into files.

What Spark would change is asked for as text, which is read by the declared types as all text is: numbers without
limits of their digits, times and days (with `infinity`), and whatever Spark does not know. Arrays and composite values
come as JSON.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from lakejoin.storage.errors import SourceError, SourceRefused, SourceUnreadable
from lakejoin.storage.sources.database.queries import PASSWORD, USERNAME, Query, spark_options

_AS_THEY_ARE = frozenset(
    {"bool", "int2", "int4", "int8", "float4", "float8", "bytea", "text", "varchar", "bpchar", "name", "uuid"}
)
"""Types whose values come through Spark as they are."""
_JSON = frozenset({"json", "jsonb"})
_TYPE = "jdbcClientType"
"""Where Spark notes what the database calls the type of a column."""
_ERROR, _NO_DRIVER = "org.postgresql.util.PSQLException", "java.lang.ClassNotFoundException"
_LOGIN, _MEANING = ("28",), ("42", "3D", "3F", "26")
"""What the codes begin with of refused logins, and of what the database does not know or allow."""
_GONE = ("08", "53", "57")
"""The same where there is no connection, or none any more."""


def take_dump(spark: SparkSession, query: Query, columns: StructType, folder: str) -> None:
    """Write the declared columns of all rows into Parquet files of a folder that is not there yet.

    `columns`: as they are declared, by the names that the database has for them. Raises `SourceRefused` for columns
    that it lacks and for what it cannot be asked, `SourceUnreadable` where it does not answer, or not to the end.
    """
    with _told(query):
        there = _asked(spark, query, f"select * from {query.rows} as lj_rows").schema
        wanted = [(field, _found(query, field.name, there)) for field in columns]
        sought = enumerate(value_of(found, field.dataType) for field, found in wanted)
        # what is computed has no name of its own
        values = ", ".join(f"{value} as lj_{number}" for number, value in sought)
        rows = _asked(spark, query, f"select {values} from {query.rows} as lj_rows")
        rows.toDF(*columns.names).write.parquet(folder)


def value_of(column: StructField, declared: DataType) -> str:
    """A column as it is asked for, in SQL. `column`: as Spark finds it, with the database's name of its type."""
    name, kind = quoted(column.name), str(column.metadata.get(_TYPE, ""))
    if kind in _AS_THEY_ARE:
        return name
    is_nested = isinstance(declared, ArrayType | MapType | StructType) and kind not in _JSON
    return f"to_json({name})::text" if is_nested or kind.startswith("_") else f"{name}::text"


def quoted(name: str) -> str:
    """The name of a column as SQL takes it, whatever signs it has."""
    return '"' + name.replace('"', '""') + '"'


def _asked(spark: SparkSession, query: Query, sql: str) -> DataFrame:
    return spark.read.format("jdbc").options(**spark_options(query)).option("query", sql).load()


def _found(query: Query, name: str, there: StructType) -> StructField:
    """The column that is meant by a declared name: capitals count where two differ in them only."""
    same = [field for field in there if field.name == name]
    same = same or [field for field in there if field.name.lower() == name.lower()]
    if len(same) != 1:
        what = f"has no column {name!r}" if not same else f"has {len(same)} columns {name!r}"
        raise SourceRefused(
            f"{query.url}: {what}; found {', '.join(there.names)}. Correct the name under `columns`, say by `from` "
            "what the database calls it, or add it to the query; then run again"
        )
    return same[0]


@contextmanager
def _told(query: Query) -> Iterator[None]:
    """Turn what the driver says into errors of a source."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        for cause in _causes(error):
            if cause.getClass().getName() == _ERROR:
                raise error_of(query, str(cause.getSQLState() or ""), _reasons(cause)) from error
            if cause.getClass().getName() == _NO_DRIVER:
                raise SourceUnreadable(
                    f"{query.url}: Spark was started without the driver of PostgreSQL, as a session is that somebody "
                    "else started. Let Lakejoin start it, or add org.postgresql:postgresql to `spark.jars.packages`"
                ) from error
        raise


def error_of(query: Query, code: str, reasons: Sequence[str]) -> SourceError:
    """The error of a source for what the driver says. `code`: the SQLSTATE, empty where there is none."""
    reason = ": ".join(reasons)
    if code.startswith(_LOGIN):
        return SourceUnreadable(
            f"{query.url}: refuses the login ({reason}); expected {USERNAME} and {PASSWORD} in the environment of "
            "Lakejoin, of a user that may read there. Nothing was read; set them, then run again"
        )
    if code.startswith(_MEANING):
        return SourceRefused(
            f"{query.url}: cannot answer ({reason}); expected rows from {' '.join(query.rows.split())}. Correct `url`, "
            "`table` or `query`, or give the user the right to read, then run again"
        )
    if not code or code.startswith(_GONE):
        return SourceUnreadable(
            f"{query.url}: does not answer ({reason}); expected a PostgreSQL server. Check the address, the network "
            "and the server, then run again"
        )
    return SourceUnreadable(
        f"{query.url}: broke off its answer ({reason}), and what came of it is not used. Correct `query` or the data, "
        "then run again"
    )


def _causes(error: Exception) -> Iterator[Any]:
    """The Java exceptions behind an error, the last one first."""
    cause: Any = error.java_exception if isinstance(error, Py4JJavaError) else getattr(error, "_origin", None)
    while cause is not None:
        yield cause
        cause = cause.getCause()


def _reasons(cause: Any) -> list[str]:
    """The first line of what each exception says: those behind it may hold values."""
    said = [str(cause.getMessage() or "")]
    if (behind := cause.getCause()) is not None:
        said.append(str(behind.getMessage() or ""))
    lines = [text.strip().split("\n", 1)[0].rstrip(".") for text in said]
    return [line for number, line in enumerate(lines) if line and line not in "".join(lines[:number])]
