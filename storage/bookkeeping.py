"""Writes the bookkeeping tables (`_plan`, `_published`, `_maintenance`): a row a commit, without Spark.

Through Spark such a commit takes four jobs, for it must first read the table's transaction identifiers: a hundred
times as long. No other writer ever touches these tables, so delta-rs and Spark never compete for a version.
"""

from collections.abc import Mapping

import pyarrow as pa
from deltalake import CommitProperties, write_deltalake
from deltalake import Transaction as AppTransaction

from storage.commits import Transaction
from storage.errors import LakeUnusable
from storage.reasons import reason_of


def record(path: str, row: Mapping[str, object], schema: pa.Schema, transaction: Transaction) -> None:
    """Append one row to a bookkeeping table; the first one makes it.

    Raises `LakeUnusable`, and `deltalake.exceptions.CommitFailedError` where another process committed this
    transaction meanwhile.
    """
    rows = pa.Table.from_pylist([{field.name: _value(row[field.name]) for field in schema}], schema=schema)
    commit = CommitProperties(
        app_transactions=[AppTransaction(transaction.app, transaction.batch)],
        custom_metadata={"userMetadata": transaction.user_metadata},
    )
    try:
        write_deltalake(path, rows, mode="append", commit_properties=commit)
    except OSError as error:
        raise LakeUnusable(
            f"{path}: cannot be written ({reason_of(error)}); the user that runs Lakejoin needs the right to "
            "write it, and the disk room for it"
        ) from error


def _value(value: object) -> object:
    """Arrow takes a map as a list of pairs."""
    if isinstance(value, Mapping):
        return [(key, _value(inner)) for key, inner in value.items()]
    return value
