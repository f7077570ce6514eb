"""Opens tables with delta-rs, each version once in a process.

To open a table is to read every commit since the last checkpoint of its log, and a batch looks at each of its tables
several times. A version never changes (Delta protocol, "Delta Log Entries"). So what was read is kept, and read again
only if the file of its commit is another one than before: then the table was put back or made anew.
"""

from dataclasses import dataclass

from deltalake import DeltaTable
from deltalake.fs import DeltaStorageHandler
from pyarrow import fs

from lakejoin.storage.filesystem import quoted_uri
from lakejoin.transforms.model.guards import guarded


@dataclass(frozen=True)
class _Opened:
    table: DeltaTable
    commit: tuple[int, int]
    """Size and time of the file of its commit."""
    store: fs.PyFileSystem


_LAST: dict[str, _Opened] = {}
"""What was opened last of each table."""


def opened(path: str, version: int | None = None) -> DeltaTable:
    """Open a table at a version, by default the newest, to look at: it is shared, so nobody may update it.

    Raises what `DeltaTable` raises.
    """
    if (last := _LAST.get(path)) is not None:
        known = last.table.version()
        commit, following = _commits(last.store, known, known + 1)
        if commit == last.commit and (following is None if version is None else known == version):
            return last.table
    table = DeltaTable(quoted_uri(path), version=version)
    store = fs.PyFileSystem(DeltaStorageHandler(quoted_uri(path)))
    (commit,) = _commits(store, table.version())
    if commit is not None:  # else a checkpoint has made it superfluous
        _LAST[path] = _Opened(table, commit, store)
    return table


def _commits(store: fs.PyFileSystem, *versions: int) -> list[tuple[int, int] | None]:
    """Sizes and times of the files of commits; None where there is none."""
    found = store.get_file_info([f"_delta_log/{version:020}.json" for version in versions])
    return [(file.size, file.mtime_ns) if file.is_file else None for file in found]


def has_committed(table: DeltaTable, app: str, version: int) -> bool:
    """Whether a table's log has a transaction identifier (Delta protocol, "Transaction Identifiers")."""
    last = table.transaction_version(app)
    return guarded("transaction_identifier") and last is not None and last >= version
