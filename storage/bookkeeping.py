"""Writes the bookkeeping tables (`_plan`, `_published`, `_maintenance`): a row a commit, without Spark.

Through Spark such a commit takes four jobs, for it must first read the table's transaction identifiers: a hundred
times as long. No other writer ever touches these tables, so delta-rs and Spark never compete for a version.
"""

from collections.abc import Mapping
from datetime import timedelta

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake
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
        # a lake made before a column was added gets it with its next row
        write_deltalake(path, rows, mode="append", schema_mode="merge", commit_properties=commit)
    except OSError as error:
        raise LakeUnusable(
            f"{path}: cannot be written ({reason_of(error)}); the user that runs Lakejoin needs the right to "
            "write it, and the disk room for it"
        ) from error


def condense(path: str, retention: timedelta) -> None:
    """Put the rows of a bookkeeping table into one file, remove the files that were before, and shorten its log.

    Files of versions younger than `retention` stay.
    """
    table = DeltaTable(path)
    table.optimize.compact()
    # without the comparison with Delta's default: the table has no other readers than those the retention is for
    hours, compare = int(retention.total_seconds() // 3600), False
    table.vacuum(retention_hours=hours, dry_run=False, enforce_retention_duration=compare, full=True)
    table.create_checkpoint()
    table.cleanup_metadata()


def _value(value: object) -> object:
    """Arrow takes a map as a list of pairs."""
    if isinstance(value, Mapping):
        return [(key, _value(inner)) for key, inner in value.items()]
    return value
