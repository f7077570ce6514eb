"""Reads a table's version, identity and transaction identifiers from its Delta log, without a JVM."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyarrow.lib import ArrowException

from lakejoin.storage.delta_log.arrow_query import identifier, query
from lakejoin.storage.errors import LakeInconsistent, LakeUnusable, file_lost, reason_of, remedy

_TORN = ("deserialize", "Requested range was invalid")
"""Words in messages of Arrow and delta-rs about damaged bytes, which they report like a file that cannot be read."""


@contextmanager
def reading_table(path: str, file: str = "") -> Iterator[None]:
    """Turn what the system, Arrow or delta-rs say about a table into `LakeUnusable` and `LakeInconsistent`.

    `file`: the data file of it that is read.
    """
    try:
        yield
    except (DeltaError, ArrowException, OSError) as error:
        if isinstance(error, OSError) and not _is_damage(error):
            raise LakeUnusable(
                f"{path}: cannot be read ({reason_of(error)}); the user that runs Lakejoin needs the right to "
                "read it"
            ) from error
        if file:
            raise file_lost(path, file, reason_of(error)) from error
        raise LakeInconsistent(
            f"{path}: is damaged, or a part of it is gone ({reason_of(error)}). {remedy(path)}"
        ) from error


def _is_damage(error: OSError) -> bool:
    return isinstance(error, FileNotFoundError) or any(sign in str(error) for sign in _TORN)


@dataclass(frozen=True)
class Snapshot:
    """A Delta table as it is now: one consistent reading of its log."""

    table: str
    version: int
    delta: DeltaTable

    @property
    def identity(self) -> str:
        """What Delta named the table when it was made; a table made anew at the same place has another."""
        return str(self.delta.metadata().id)

    def transaction(self, app: str) -> int | None:
        """Last version that this application committed to the table (Delta protocol: Transaction Identifiers)."""
        return self.delta.transaction_version(app)

    def read(self, columns: list[str] | None = None) -> list[dict[str, Any]]:
        """All rows of a small bookkeeping table; never used for data."""
        rows: list[dict[str, Any]] = self.arrow(columns).to_pylist(maps_as_pydicts="strict")
        return rows

    def arrow(self, columns: list[str] | None = None) -> pa.Table:
        """The same as Arrow's table."""
        with reading_table(self.delta.table_uri.removeprefix("file://").rstrip("/")):
            # pyarrow would read by a file system that is Python's, whose threads may abort a process that ends
            # (apache/arrow#34314)
            schema = pa.schema(self.delta.schema().to_arrow())
            wanted = schema if columns is None else pa.schema([schema.field(name) for name in columns])
            names = ", ".join(map(identifier, wanted.names))
            return (
                query(f"SELECT {names} FROM bookkeeping", {"bookkeeping": self.delta}).read_all().cast(wanted)
            )
