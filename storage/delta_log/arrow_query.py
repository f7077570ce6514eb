"""Runs SQL over versions of Delta tables without a JVM, by DataFusion in delta-rs, which knows deletion vectors."""

from collections.abc import Mapping

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

_CONFIGURATION = {"datafusion.sql_parser.enable_ident_normalization": "false"}
"""A name without quotes is the column as it is written, capitals and all."""


def identifier(name: str) -> str:
    """Return a name as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


def text_literal(text: str) -> str:
    """Return a text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def query(sql: str, tables: Mapping[str, DeltaTable]) -> pa.RecordBatchReader:
    """Begin to read what SQL makes of tables, each at the version that it was opened at, by the names given here.

    Raises what delta-rs raises, and pyarrow while it is read.
    """
    builder = QueryBuilder(_CONFIGURATION)
    for name, table in tables.items():
        builder.register(name, table)
    return pa.RecordBatchReader.from_stream(builder.execute(sql))
