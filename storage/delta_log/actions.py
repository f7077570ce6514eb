"""Reads the actions in the commits of a table, as its log has them, and names the files that they need.

A commit either has files of its own for the change data feed, or its feed follows from the data files that came and
went (Delta protocol, "Add CDC File"). Numbers of rows come from statistics and footers, never from the rows. Errors of
delta-rs, Arrow and the system become errors of sources.
"""

import json
from base64 import b85decode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote
from uuid import UUID

import pyarrow.parquet as pq
from deltalake.exceptions import DeltaError, TableNotFoundError
from pyarrow import fs
from pyarrow.lib import ArrowException

from lakejoin.storage.errors import SourceBroken, SourceNotFound, SourceUnreadable, reason_of
from lakejoin.storage.filesystem import open_file_system

Action = dict[str, Any]
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_B85 = str.maketrans(_Z85, _B85)
_UUID = 20
"""Characters of Z85 (ZeroMQ RFC 32) that 16 bytes take."""


class LogActions:
    """The commits of a table, and the files that they name."""

    def __init__(self, path: str) -> None:
        """Raises `SourceRefused` for a place without a file system."""
        self._path = path
        self._system, self._root = open_file_system(path)

    def of(self, version: int) -> list[Action] | None:
        """The actions of a version; None where the log no longer has it. Raises `SourceUnreadable`."""
        try:
            return actions_of(self._system, f"{self._root}/_delta_log", version)
        except OSError as error:
            raise SourceUnreadable(
                f"{self._path}: version {version} cannot be read ({reason_of(error)})"
            ) from error

    def entries(self) -> list[str]:
        """Names of what lies in the folder of the log. Raises `SourceUnreadable`."""
        with opening(self._path):
            found = self._system.get_file_info(fs.FileSelector(f"{self._root}/_delta_log"))
        return [info.base_name for info in found]

    def missing(self, names: Sequence[str]) -> str | None:
        """The first of these files that the table has lost; None if all are there."""
        # a shallow clone names files of another table by whole URIs
        ours = [name for name in names if ":" not in name]
        infos = self._system.get_file_info([self._place(name) for name in ours])
        gone = (n for n, info in zip(ours, infos, strict=True) if info.type == fs.FileType.NotFound)
        return next(gone, None)

    def changed_rows(self, actions: Sequence[Action]) -> int:
        """About how many rows of the feed a commit has; both halves of an update may be counted."""
        if written := list(of_kind(actions, "cdc")):
            return sum(self.rows_of(file["path"]) for file in written)
        added, removed = row_files(actions)
        both = added.keys() & removed.keys()
        marked = sum(abs(_marked(added[name]) - _marked(removed[name])) for name in both)
        whole = [file for name, file in (added | removed).items() if name not in both]
        return marked + sum(self._rows(file) - _marked(file) for file in whole)

    def rows_of(self, name: str) -> int:
        """How many rows a file has, by its footer."""
        with opening(self._path):
            return int(pq.read_metadata(self._place(name), filesystem=self._system).num_rows)

    def _rows(self, file: Action) -> int:
        stated = json.loads(file.get("stats") or "{}").get("numRecords")
        return self.rows_of(file["path"]) if stated is None else int(stated)

    def _place(self, name: str) -> str:
        name = unquote(name)
        return name if name.startswith("/") else f"{self._root}/{name}"


def actions_of(system: fs.FileSystem, log: str, version: int) -> list[Action] | None:
    """The actions of a version by its entry in the folder of a log; None where the log no longer has it."""
    try:
        with system.open_input_stream(f"{log}/{version:020d}.json") as stream:
            # as bytes: their lines end at line feeds alone, while a text is also split at other separators
            return [json.loads(line) for line in stream.read().splitlines() if line]
    except FileNotFoundError:
        return None


def of_kind(actions: Sequence[Action], kind: str) -> Iterator[Action]:
    """The actions of one kind."""
    return (action[kind] for action in actions if kind in action)


def files_needed(actions: Sequence[Action]) -> list[str]:
    """The files that the feed of a commit is read from, deletion vectors among them."""
    if written := [file["path"] for file in of_kind(actions, "cdc")]:
        return written
    added, removed = row_files(actions)
    # of a file that went and came again both deletion vectors are read: the difference is what changed
    vectors = [vector_file(file) for file in (*added.values(), *removed.values())]
    return list(dict.fromkeys([*added, *removed, *filter(None, vectors)]))


def row_files(actions: Sequence[Action]) -> tuple[dict[str, Action], dict[str, Action]]:
    """The data files that came with a commit and those that went, by path, without files that were only rewritten."""
    added, removed = (
        {file["path"]: file for file in of_kind(actions, kind) if file["dataChange"]}
        for kind in ("add", "remove")
    )
    return added, removed


def _marked(file: Action) -> int:
    """How many rows of a file a deletion vector marks as deleted."""
    return int((file.get("deletionVector") or {}).get("cardinality", 0))


@contextmanager
def opening(path: str) -> Iterator[None]:
    """Turn what delta-rs, Arrow or the system say about a table into errors of sources."""
    try:
        yield
    except TableNotFoundError as error:
        raise SourceNotFound(
            f"{path}: is no Delta table; check the path, or run again once its owner has made the table"
        ) from error
    except (DeltaError, ArrowException) as error:
        raise SourceBroken(
            f"{path}: the log of the Delta table cannot be read ({reason_of(error)}); restore the table from a copy"
        ) from error
    except OSError as error:
        raise SourceUnreadable(
            f"{path}: cannot be read ({reason_of(error)}); the user that runs Lakejoin needs the right to read it"
        ) from error


def vector_file(file: Mapping[str, Any]) -> str | None:
    """The file with the deletion vector of an `add` or `remove`: below the table, or a place of its own.

    None where it has no vector, or the log itself holds it.
    """
    vector = file.get("deletionVector") or {}
    where = vector.get("pathOrInlineDv", "")
    match vector.get("storageType"):
        case "u":
            prefix, text = where[:-_UUID], where[-_UUID:]
            name = f"deletion_vector_{UUID(bytes=b85decode(text.translate(_TO_B85)))}.bin"
            return f"{prefix}/{name}" if prefix else name
        case "p":
            return str(where)
        case _:
            return None
