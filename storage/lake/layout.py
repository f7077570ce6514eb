"""Names the tables of a lake, and reads their versions and transaction identifiers from their Delta logs.

Progress is read from the tables' own logs with delta-rs, which needs no JVM. `storage.lake.bookkeeping` writes with it.
"""

import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from lakejoin.storage.delta_log.open_table import opened
from lakejoin.storage.delta_log.snapshot import Snapshot, reading_table
from lakejoin.storage.delta_log.torn_commits import is_empty
from lakejoin.storage.errors import LakeInconsistent, remedy
from lakejoin.storage.filesystem import quoted_uri

PLAN = "_plan"
PUBLISHED = "_published"
MAINTENANCE = "_maintenance"
BOOKKEEPING = (PLAN, PUBLISHED, MAINTENANCE)
LEASE = "_lease"
QUARANTINE = "quarantine"
ASIDE = "_aside"
"""Folder of damaged tables that were replaced."""
SCRATCH = "_scratch"
"""Folder of what large batches keep while they run."""


def changes_of(table: str) -> str:
    """Table of every source record of a declared table, with its status."""
    return f"tables/{table}/changes"


def rows_of(table: str) -> str:
    """Folded base of a declared table's current rows."""
    return f"tables/{table}/rows"


def versions_of(table: str) -> str:
    """Folded base of a versioned table's history."""
    return f"tables/{table}/versions"


def records_of(stream: str) -> str:
    """Every record of a stream, with its status."""
    return f"streams/{stream}/records"


def joined_of(join: str) -> str:
    """The result of a join."""
    return f"joins/{join}/joined"


def subscription_log_of(join: str) -> str:
    """Every message of a join's left side to its right side."""
    return f"joins/{join}/subscription_log"


def subscription_store_of(join: str) -> str:
    """Folded base of a join's subscriptions."""
    return f"joins/{join}/subscription_store"


def left_rows_of(join: str) -> str:
    """The rows of a join's left table once more, in the order of their foreign key."""
    return f"joins/{join}/left_rows"


def response_log_of(join: str) -> str:
    """Every answer of a join's right side."""
    return f"joins/{join}/response_log"


def changelog_of(join: str) -> str:
    """Every emission of a join that keeps them."""
    return f"joins/{join}/changelog"


def history_of(join: str) -> str:
    """Every version of a result that keeps them."""
    return f"joins/{join}/history"


def shown_name(table: str) -> str:
    """What people call a table of a join: `joins/J/response_log` is `J.response_log`."""
    return ".".join(table.split("/")[1:])


def is_base(table: str) -> bool:
    """Whether it is a table that a log is folded into."""
    return table.rpartition("/")[2] in {"rows", "versions", "subscription_store", "left_rows"}


def is_copy(table: str) -> bool:
    """Whether a base holds what another one does, in another order: a batch does without it where it is not there."""
    return table.rpartition("/")[2] == "left_rows"


def _is_directory(path: Path) -> bool:
    """Like `Path.is_dir`, which in some versions of Python takes what may not be looked at for absent."""
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


@dataclass(frozen=True)
class Lake:
    """The directory or URI that holds every table of a pipeline."""

    root: str

    @property
    def local(self) -> Path | None:
        """The directory, if the lake is one."""
        return None if "://" in self.root else Path(self.root)

    def path(self, table: str) -> str:
        """Where a table is, by its name below the lake."""
        return f"{self.root.rstrip('/')}/{table}"

    def scratch(self) -> str:
        """A folder for what a run keeps while it works on a batch; where no lock keeps others away, its own."""
        folder = self.path(SCRATCH)
        return folder if self.local is not None else f"{folder}/{uuid4()}"

    def has(self, table: str) -> bool:
        """Whether there is a table, in whatever state it is. Raises `LakeUnusable`."""
        with reading_table(self.path(table)):
            if self.local is not None:
                return _is_directory(self.local / table / "_delta_log")
            return DeltaTable.is_deltatable(quoted_uri(self.path(table)))

    def snapshot(self, table: str, version: int | None = None) -> Snapshot | None:
        """The table as it is now or was, or None where there is none. Raises `LakeUnusable`, `LakeInconsistent`."""
        with reading_table(self.path(table)):
            if self.local is not None and not self.has(table):
                return None
            try:
                delta = opened(self.path(table), version)
            except TableNotFoundError:
                return None
        version = delta.version()
        if self.local is not None and is_empty(self.local, table, version):
            raise LakeInconsistent(
                f"{self.path(table)}: the commit of version {version} is empty; expected what it did. The machine lost "
                "power, or the file was cut. `lakejoin run FILE` sets it aside unless a finished batch needs it. Else: "
                f"{remedy(table)}"
            )
        return Snapshot(table, version, delta)

    def versions(self, tables: Iterable[str]) -> dict[str, int]:
        """Current version of each of these tables that exists."""
        snapshots = (self.snapshot(table) for table in tables)
        return {snapshot.table: snapshot.version for snapshot in snapshots if snapshot is not None}
