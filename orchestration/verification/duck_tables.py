"""Copies rows of a lake into DuckDB, which puts on disk what does not fit into memory."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pyarrow as pa

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.errors import WrongUsage
from lakejoin.orchestration.show.arrow_tables import arrow_tables
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.lake.plan import Plan

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def check_installed() -> None:
    """Raise `WrongUsage` where DuckDB is not installed."""
    if find_spec("duckdb") is None:
        raise WrongUsage("duckdb is not installed, and compares the rows; `pip install 'lakejoin[verify]'`")


@contextmanager
def connected() -> "Iterator[DuckDBPyConnection]":
    """Open a database for a while. Raises `WrongUsage` where DuckDB is not installed."""
    check_installed()
    import duckdb

    with (
        TemporaryDirectory(prefix="lakejoin-") as folder,
        duckdb.connect(config={"temp_directory": folder}) as opened,
    ):
        yield opened


def rows_of(pipeline: Pipeline, snapshot: Plan, name: str, columns: Sequence[str]) -> pa.RecordBatchReader:
    """Begin to read columns of a table or result as a snapshot has it, by the name that it is shown by.

    Raises `LakeUnusable` and `LakeInconsistent`.
    """
    return arrow_tables(pipeline)[name].reader(Lake(pipeline.lake), snapshot, list(dict.fromkeys(columns)))


def create(connection: "DuckDBPyConnection", name: str, rows: pa.RecordBatchReader) -> None:
    """Copy rows into a new table; times become those of UTC, without a zone."""
    # it has zones in an extension that it would fetch from the network
    types = [f.with_type(pa.timestamp("us")) if pa.types.is_timestamp(f.type) else f for f in rows.schema]
    connection.register("_arriving", rows.cast(pa.schema(types)))
    connection.execute(f"CREATE TABLE {name} AS SELECT * FROM _arriving")
    connection.unregister("_arriving")
