"""Writes the bookkeeping tables (`_plan`, `_published`, `_maintenance`) without Spark, one row in each commit.

Through Spark such a commit takes four jobs, for it must first read the table's transaction identifiers: a hundred times
as long. No other writer ever touches these tables, so delta-rs and Spark never compete for a version.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass
from datetime import date, datetime, timedelta
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake import Transaction as AppTransaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from lakejoin.storage.delta_log.open_table import has_committed, opened
from lakejoin.storage.delta_log.snapshot import reading_table
from lakejoin.storage.delta_log.torn_commits import flush
from lakejoin.storage.delta_log.transaction_id import Transaction
from lakejoin.storage.errors import LakeBusy, LakejoinError, LakeUnusable, reason_of
from lakejoin.storage.filesystem import quoted_uri

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

MANY_FILES = 20
"""A bookkeeping table is condensed when it has so many: every run reads all of them, at 2 ms each."""
_ARROW = {
    bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string(), date: pa.date32(),
    datetime: pa.timestamp("us", "UTC"),
}  # fmt: skip


@dataclass(frozen=True)
class RowFiles:
    """The files of a bookkeeping table: one for each row, until they are condensed."""

    count: int

    @property
    def due(self) -> bool:
        """Whether there are enough of them to be condensed."""
        return self.count >= MANY_FILES

    @property
    def any(self) -> bool:
        """Whether condensing would leave fewer."""
        return self.count > 1

    @property
    def why(self) -> str:
        """The figure that decides, as text."""
        return f"{self.count:,} files to put together"


def row_files(path: str) -> RowFiles:
    """Look at a bookkeeping table. Raises `LakeInconsistent`, `LakeUnusable`."""
    with reading_table(path):
        return RowFiles(len(opened(path).file_uris()))


def row_schema(row: type["DataclassInstance"]) -> pa.Schema:
    """Return the columns of a table whose rows are of a dataclass: its fields, in their order."""
    return pa.schema(list(_arrow(row)))


def _arrow(kind: Any) -> pa.DataType:
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return pa.struct([(member.name, _arrow(hints[member.name])) for member in fields(kind)])
    base, inner = get_origin(kind), get_args(kind)
    if base is Mapping:
        return pa.map_(*map(_arrow, inner))
    if base in {tuple, Sequence}:  # of any length
        return pa.list_(_arrow(inner[0]))
    if base is Literal:
        return pa.string()
    return _ARROW[inner[0] if inner else kind]  # of two the other is None


def record(path: str, row: "DataclassInstance", transaction: Transaction) -> bool:
    """Append one row to a bookkeeping table, once; the first one makes it. The row's fields are the columns.

    Returns whether this call made the commit. False: the table has the transaction identifier already, because another
    run came first, or because the commit was made and its answer was lost. Raises `LakeBusy` and `LakeUnusable`.
    """
    table = _open(path)
    if table is not None and has_committed(table, transaction.app, transaction.batch):
        return False
    values = {name: _value(value) for name, value in asdict(row).items()}
    rows = pa.Table.from_pylist([values], row_schema(type(row)))
    commit = CommitProperties(
        app_transactions=[AppTransaction(transaction.app, transaction.batch)],
        custom_metadata={"userMetadata": transaction.user_metadata},
    )
    try:
        # on the version that was looked at: of two runs that looked at the same, one fails
        place = quoted_uri(path) if table is None else table
        # a lake made before a column was added gets it with its next row
        write_deltalake(place, rows, mode="append", schema_mode="merge", commit_properties=commit)
    except (DeltaError, OSError) as error:
        made = _open(path)
        if made is None or not has_committed(made, transaction.app, transaction.batch):
            raise _explained(path, error) from error
        return False
    return True


def _open(path: str) -> DeltaTable | None:
    with reading_table(path):
        try:
            return DeltaTable(quoted_uri(path))
        except TableNotFoundError:
            return None


def _explained(path: str, error: Exception) -> LakejoinError:
    if isinstance(error, CommitFailedError):
        return LakeBusy(
            f"{path}: another process committed to it meanwhile ({reason_of(error)}); one run at a time works on a "
            "lake. Wait for the other to end, then run again."
        )
    return LakeUnusable(
        f"{path}: cannot be written ({reason_of(error)}); the user that runs Lakejoin needs the right to write it, and "
        "the disk room for it"
    )


def condense(path: str, retention: timedelta) -> None:
    """Put the rows of a bookkeeping table into one file, remove the files that were before, and shorten its log.

    Files of versions younger than `retention` stay. On a local lake each step is on the disk before the next one
    stands on it: nothing in the lake could make these rows anew. Raises `LakeBusy` and `LakeUnusable`.
    """
    # without Delta's check against its default retention: the table has no readers that need a longer one
    hours, compare = ceil(retention / timedelta(hours=1)), False
    try:
        table = DeltaTable(quoted_uri(path))
        vacuum = partial(table.vacuum, hours, dry_run=False, enforce_retention_duration=compare, full=True)
        flush(path)
        for step in (table.optimize.compact, vacuum, table.create_checkpoint):
            step()
            flush(path)
        table.cleanup_metadata()
    except CommitFailedError as error:
        raise _explained(path, error) from error
    except (DeltaError, OSError) as error:
        raise LakeUnusable(
            f"{path}: its rows cannot be put into one file ({reason_of(error)}). Either a file of the table is damaged "
            "or gone, then put it back from a copy; or the user that runs Lakejoin may not write there, or the disk is "
            "full"
        ) from error


def _value(value: object) -> object:
    """Arrow takes a map as a list of pairs."""
    if isinstance(value, Mapping):
        return [(key, _value(inner)) for key, inner in value.items()]
    return value
