"""Writes the bookkeeping tables (`_plan`, `_published`, `_maintenance`): a row a commit, without Spark.

Through Spark such a commit takes four jobs, for it must first read the table's transaction identifiers: a hundred
times as long. No other writer ever touches these tables, so delta-rs and Spark never compete for a version.
"""

from collections.abc import Mapping

import pyarrow as pa
from deltalake import CommitProperties, write_deltalake
from deltalake import Transaction as AppTransaction

from storage.commits import Transaction


def record(path: str, row: Mapping[str, object], schema: pa.Schema, transaction: Transaction) -> None:
    """Append one row to a bookkeeping table; the first one makes it.

    Raises `deltalake.exceptions.CommitFailedError` where another process committed this transaction meanwhile.
    """
    values = {field.name: _value(row[field.name]) for field in schema}
    write_deltalake(
        path,
        pa.Table.from_pylist([values], schema=schema),
        mode="append",
        commit_properties=CommitProperties(
            app_transactions=[AppTransaction(transaction.app, transaction.batch)],
            custom_metadata={"userMetadata": transaction.user_metadata},
        ),
    )


def _value(value: object) -> object:
    """Arrow takes a map as a list of pairs."""
    if isinstance(value, Mapping):
        return [(key, _value(inner)) for key, inner in value.items()]
    return value
