"""What the log of a Delta table says of its Change Data Feed: which versions wait, and how many rows they changed.

A feed is read version by version, so a range of versions stands where a range of lines stands for a file. Whoever reads
a table for the first time begins with the whole of it as it is now, and goes on with the changes after that version: so
it does not matter since when the table keeps a feed. No JVM is started.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from pyarrow import fs
from pyarrow.lib import ArrowException

from storage.file_systems import open_file_system
from storage.reasons import reason_of
from storage.source_errors import (
    SourceBroken,
    SourceChanged,
    SourceNotFound,
    SourceRefused,
    SourceTrimmed,
    SourceUnreadable,
)

FEED = "_delta_log"
"""What a plan calls a range of versions, where it has the name of a file: no source file begins with `_`."""
NOTHING = -1
"""The version before the first: a range after it is the whole table at its last version."""
_PROPERTY = "delta.enableChangeDataFeed"


@dataclass(frozen=True)
class FeedVersion:
    """A version of a table that was not read."""

    after: int
    """The version that its changes follow; `NOTHING` where it stands for the whole table."""
    number: int
    records: int
    """About how many rows of the feed it has: both halves of an update may be counted."""
    modified: int
    """When it was committed, in nanoseconds since 1970."""
    identity: str
    """What Delta named the table."""


class Feed:
    """A Delta table that keeps a Change Data Feed, as its log is now."""

    def __init__(self, path: str) -> None:
        """Open the log. Raises `SourceNotFound` for no table, `SourceBroken`, `SourceUnreadable`."""
        self.path = path
        with _opening(path):
            self._table = DeltaTable(path)
            self.version = self._table.version()
            metadata = self._table.metadata()
        self.identity = str(metadata.id)
        self._enabled = _is_on(metadata.configuration)
        self._system, self._root = open_file_system(path)

    @cached_property
    def columns(self) -> list[str]:
        """Names of the table's columns."""
        with _opening(self.path):
            return [field.name for field in self._table.schema().fields]

    def whole(self) -> FeedVersion:
        """The table as it is now, for those who never read it. Raises `SourceRefused` where it keeps no feed."""
        if not self._enabled:
            raise SourceRefused(
                f"{self.path}: keeps no change feed: at version {self.version} its property {_PROPERTY} is not true. "
                f"Whoever owns it can turn it on: ALTER TABLE delta.`{self.path}` SET TBLPROPERTIES ({_PROPERTY} = "
                "true); then run again."
            )
        with _opening(self.path):
            files: Any = pa.table(self._table.get_add_actions(flatten=True))
            history = self._table.history(1)
        names = files["path"].to_pylist()
        counts = (
            files["num_records"].to_pylist() if "num_records" in files.column_names else [None] * len(names)
        )
        rows = sum(
            self._rows_of_file(name) if count is None else count
            for name, count in zip(names, counts, strict=True)
        )
        modified = int(history[0].get("timestamp", 0)) * 1_000_000 if history else 0
        return FeedVersion(NOTHING, self.version, rows, modified, self.identity)

    def after(self, read: int, identity: str) -> list[FeedVersion]:
        """The versions after the last one that was read. `identity`: what the table was named then.

        Raises `SourceChanged` for another table at this place, `SourceTrimmed` where a part of what happened since
        is gone, and `SourceRefused` where the feed was turned off.
        """
        if self.version < read:
            raise SourceChanged(
                f"{self.path}: is at version {self.version} now, and version {read} was read: the table was made anew "
                "or put back from a copy. " + _ANEW
            )
        found = []
        for number in range(read + 1, self.version + 1):
            actions = self._commit(number, read)
            for metadata in _kind(actions, "metaData"):
                self._check_on(metadata, number)
                identity = metadata["id"]
            info = next(_kind(actions, "commitInfo"), {})
            time = int(info.get("inCommitTimestamp", info.get("timestamp", 0))) * 1_000_000
            rows = self._changed_rows(actions, number, read)
            found.append(FeedVersion(number - 1, number, rows, time, identity))
        if identity != self.identity:
            raise SourceChanged(
                f"{self.path}: is another table than the one that was read up to version {read}: Delta names it "
                f"{self.identity}, expected {identity}. " + _ANEW
            )
        return found

    def check_range(self, after: int, through: int, identity: str) -> None:
        """See that a range which was planned can still be read. Raises what `after` does."""
        if self.version < through or self.identity != identity:
            self.after(through, identity)
        if after != NOTHING:
            for number in range(after + 1, through + 1):
                self._changed_rows(self._commit(number, after), number, after)
            return
        try:
            with _opening(self.path):
                files: Any = pa.table(DeltaTable(self.path, version=through).get_add_actions(flatten=True))
        except SourceBroken as error:
            raise self._trimmed(f"version {through} of the log", after) from error
        self._check_there(files["path"].to_pylist(), through, after)

    def _check_on(self, metadata: dict[str, Any], number: int) -> None:
        if not _is_on(metadata.get("configuration") or {}):
            raise SourceRefused(
                f"{self.path}: its change feed was turned off with version {number}, so what happened since is not "
                f"known; expected {_PROPERTY} = true. Turn it on. " + _ANEW
            )

    def _commit(self, number: int, read: int) -> list[dict[str, Any]]:
        """The actions of a version."""
        try:
            with self._system.open_input_stream(f"{self._root}/_delta_log/{number:020d}.json") as stream:
                text = stream.read().decode()
        except FileNotFoundError as error:
            raise self._trimmed(f"version {number} of the log", read) from error
        except OSError as error:
            raise SourceUnreadable(
                f"{self.path}: version {number} cannot be read ({reason_of(error)})"
            ) from error
        return [json.loads(line) for line in text.splitlines() if line]

    def _changed_rows(self, actions: Sequence[dict[str, Any]], number: int, read: int) -> int:
        """About how many rows of the feed a version has. Raises `SourceTrimmed` where its files are gone."""
        if written := list(_kind(actions, "cdc")):
            names = [file["path"] for file in written]
            self._check_there(names, number, read)
            return sum(self._rows_of_file(name) for name in names)
        added, removed = (
            {file["path"]: file for file in _kind(actions, kind) if file["dataChange"]}
            for kind in ("add", "remove")
        )
        self._check_there([*(added | removed)], number, read)
        rows = 0
        for name in added | removed:
            if name in added and name in removed:
                rows += abs(_marked(added[name]) - _marked(removed[name]))
            else:
                file = added.get(name) or removed[name]
                rows += self._rows(file) - _marked(file)
        return rows

    def _rows(self, file: dict[str, Any]) -> int:
        stated = json.loads(file.get("stats") or "{}").get("numRecords")
        return self._rows_of_file(file["path"]) if stated is None else int(stated)

    def _rows_of_file(self, name: str) -> int:
        with _opening(self.path):
            return int(pq.read_metadata(self._place(name), filesystem=self._system).num_rows)

    def _check_there(self, names: Sequence[str], number: int, read: int) -> None:
        # a file of another table, as a shallow clone has them, has a URI of its own
        ours = [name for name in names if ":" not in name]
        infos = self._system.get_file_info([self._place(name) for name in ours])
        for name, info in zip(ours, infos, strict=True):
            if info.type == fs.FileType.NotFound:
                raise self._trimmed(f"{name}, which version {number} needs,", read)

    def _place(self, name: str) -> str:
        return f"{self._root}/{unquote(name)}"

    def _trimmed(self, what: str, read: int) -> SourceTrimmed:
        done = "nothing was read before" if read == NOTHING else f"versions up to {read} were read"
        return SourceTrimmed(
            f"{self.path}: the change feed was trimmed: {what} is gone; {done}, and the table is at version "
            f"{self.version}. Put it back from a copy if there is one. {_ANEW} To keep feeds longer, let the table's "
            "owner raise delta.logRetentionDuration and delta.deletedFileRetentionDuration, and vacuum with these."
        )


_ANEW = "To begin again with the table as it is, point `lake` at a new directory."


def _is_on(configuration: dict[str, Any]) -> bool:
    return str(configuration.get(_PROPERTY, "")).lower() == "true"


def _kind(actions: Sequence[dict[str, Any]], kind: str) -> Iterator[dict[str, Any]]:
    return (action[kind] for action in actions if kind in action)


def _marked(file: dict[str, Any]) -> int:
    """How many rows of a file a deletion vector marks as deleted."""
    return int((file.get("deletionVector") or {}).get("cardinality", 0))


@contextmanager
def _opening(path: str) -> Iterator[None]:
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
