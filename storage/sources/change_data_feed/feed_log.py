"""Reads the log of a Delta table that keeps a Change Data Feed: which versions wait, and how many rows they changed.

A feed is read version by version, so a range of versions takes the place of a range of lines. The first reading takes
the whole table as it is now; later ones take the changes after that version. So it does not matter since when the table
keeps a feed. Before a planned range is read, its files must still be there, and the table must be the same one. No JVM
is started.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from lakejoin.storage.delta_log.actions import Action, LogActions, files_needed, of_kind, opening
from lakejoin.storage.errors import SourceBroken, SourceChanged, SourceRefused, SourceTrimmed, reason_of
from lakejoin.storage.filesystem import quoted_uri
from lakejoin.storage.sources.change_data_feed.feed_schema import reads_state_before

NOTHING = -1
"""The version before the first: a range after it is the whole table at its last version."""
_PROPERTY = "delta.enableChangeDataFeed"
_ANEW = "To begin again with the table as it is, point `lake` at a new directory."
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(
    r"(\d{20})\.checkpoint(?:\.\d{10}\.(?P<parts>\d{10})|\.[0-9a-f-]{36})?\.(?:parquet|json)"
)


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
        with opening(path):
            self._table = DeltaTable(quoted_uri(path))
            self.version = self._table.version()
            metadata = self._table.metadata()
        self.identity = str(metadata.id)
        self._enabled = _is_on(metadata.configuration)
        self._log = LogActions(path)

    @cached_property
    def columns(self) -> list[str]:
        """Names of the table's columns."""
        with opening(self.path):
            return [field.name for field in self._table.schema().fields]

    def whole(self) -> FeedVersion:
        """The table as it is now, for those who never read it. Raises `SourceRefused` where it keeps no feed."""
        if not self._enabled:
            raise SourceRefused(
                f"{self.path}: keeps no change feed: at version {self.version} its property {_PROPERTY} is not true. "
                f"Whoever owns it can turn it on: ALTER TABLE delta.`{self.path}` SET TBLPROPERTIES ({_PROPERTY} = "
                "true); then run again."
            )
        return self._whole()

    def newest(self, read: int | None) -> FeedVersion | None:
        """The table as it is now, which needs no feed; None where that was read. `read`: the last version that was.

        Raises `SourceChanged` where the table was put back.
        """
        if read is not None:
            self._check_not_back(read)
        return None if read == self.version else self._whole()

    def _whole(self) -> FeedVersion:
        with opening(self.path):
            files: Any = pa.table(self._table.get_add_actions(flatten=True))
            info = next(iter(self._table.history(1)), {})
        names = files["path"].to_pylist()
        stated = (
            files["num_records"].to_pylist() if "num_records" in files.column_names else [None] * len(names)
        )
        rows = sum(
            self._log.rows_of(name) if count is None else count
            for name, count in zip(names, stated, strict=True)
        )
        return FeedVersion(NOTHING, self.version, rows, _time(info), self.identity)

    def after(self, read: int, identity: str, modified: int = 0) -> list[FeedVersion]:
        """The versions after the last one that was read.

        `identity`: what the table was named then; `modified`: when that version was committed, 0 if nobody knows.

        Raises `SourceChanged` for another table at this place, `SourceTrimmed` where a part of what happened since
        is gone, and `SourceRefused` where the feed was turned off.
        """
        self._check_not_back(read)
        found = []
        for number in range(read + 1, self.version + 1):
            actions = self._actions(number, read)
            for metadata in of_kind(actions, "metaData"):
                self._check_on(metadata, number)
                identity = metadata["id"]
            rows = self._log.changed_rows(actions)
            found.append(FeedVersion(number - 1, number, rows, _committed(actions), identity))
        if identity != self.identity:
            raise SourceChanged(
                f"{self.path}: is another table than the one that was read up to version {read}: Delta names it "
                f"{self.identity}, expected {identity}. {_ANEW}"
            )
        self._check_same(read, modified)
        return found

    def _check_not_back(self, read: int) -> None:
        if self.version < read:
            raise SourceChanged(
                f"{self.path}: is at version {self.version} now, and version {read} was read: the table was made anew "
                f"or put back from a copy. {_ANEW}"
            )

    def check_whole(self, number: int, modified: int) -> None:
        """See that the state of a version that was planned can still be read. Raises what `after` does."""
        self._check_not_back(number)
        self._check_same(number, modified)
        self._check_whole(number)

    def check_range(self, after: int, through: int, identity: str, modified: int = 0) -> None:
        """See that a range which was planned can still be read. Raises what `after` does."""
        if self.version < through or self.identity != identity:
            self.after(through, identity)
        self._check_same(through, modified)
        if after != NOTHING:
            for number in range(after + 1, through + 1):
                self._actions(number, after)
            return
        self._check_whole(through)

    def _check_whole(self, number: int) -> None:
        """See that the state of a version can be read."""
        try:
            with opening(self.path):
                table = DeltaTable(quoted_uri(self.path), version=number)
                files: Any = pa.table(table.get_add_actions(flatten=True))
        except SourceBroken as error:
            raise self._trimmed(f"version {number} of the log", NOTHING) from error
        self._check_there(files["path"].to_pylist(), number, NOTHING)
        try:
            # delta-rs names them only by reading them
            if "deletionVectors" in (table.protocol().reader_features or ()):
                table.deletion_vectors()
        except DeltaError as error:
            # there are tables whose vectors it cannot read, and Spark can
            if "not found" in str(error).lower():
                what = f"a deletion vector, which version {number} needs ({reason_of(error)}),"
                raise self._trimmed(what, NOTHING) from error

    def _check_same(self, number: int, modified: int) -> None:
        """See that a version which was read is the one that is there."""
        found = _committed(self._log.of(number) or [])
        if found and modified and found != modified:
            raise SourceChanged(
                f"{self.path}: version {number} was committed at {_shown(found)}, and the one that was read at "
                f"{_shown(modified)}: the table was put back from a copy and went on from there. {_ANEW}"
            )

    def _check_on(self, metadata: Action, number: int) -> None:
        if not _is_on(metadata.get("configuration") or {}):
            raise SourceRefused(
                f"{self.path}: its change feed was turned off with version {number}, so what happened since is not "
                f"known; expected {_PROPERTY} = true. Turn it on. {_ANEW}"
            )

    def _actions(self, number: int, read: int) -> list[Action]:
        """The actions of a version whose files are all there."""
        actions = self._log.of(number)
        if actions is None:
            raise self._trimmed(f"version {number} of the log", read)
        self._check_there(files_needed(actions), number, read)
        if number == read + 1:
            self._check_state(read if reads_state_before(actions) else number, read)
        return actions

    def _check_state(self, number: int, read: int) -> None:
        """See that the log tells the state with which a range begins: Delta has the columns from it."""
        if not tells_state(self._log.entries(), number):
            raise self._trimmed(f"the state of version {number} (a checkpoint, the commits after it)", read)

    def _check_there(self, names: Sequence[str], number: int, read: int) -> None:
        if gone := self._log.missing(names):
            raise self._trimmed(f"{gone}, which version {number} needs,", read)

    def _trimmed(self, what: str, read: int) -> SourceTrimmed:
        done = "nothing was read before" if read == NOTHING else f"versions up to {read} were read"
        return SourceTrimmed(
            f"{self.path}: the change feed was trimmed: {what} is gone; {done}, and the table is at version "
            f"{self.version}. Put it back from a copy if there is one. {_ANEW} To keep feeds longer, let the table's "
            "owner raise delta.logRetentionDuration and delta.deletedFileRetentionDuration, and vacuum with these."
        )


def _is_on(configuration: Mapping[str, Any]) -> bool:
    return str(configuration.get(_PROPERTY, "")).lower() == "true"


def _committed(actions: Sequence[Action]) -> int:
    """When a version was committed, as `_time` says it."""
    return _time(next(of_kind(actions, "commitInfo"), {}))


def _time(info: Mapping[str, Any]) -> int:
    """When a commit was made, in nanoseconds since 1970; 0 where its writer does not say."""
    return int(info.get("inCommitTimestamp") or info.get("timestamp") or 0) * 1_000_000


def _shown(time: int) -> str:
    return datetime.fromtimestamp(time / 1e9, UTC).isoformat(timespec="milliseconds")


def tells_state(names: Iterable[str], version: int) -> bool:
    """Whether the state of a version can be made of a log with entries of these names."""
    names = list(names)
    commits = {int(match[1]) for name in names if (match := _COMMIT.fullmatch(name))}
    begin = max((found for found in _checkpoints(names) if found <= version), default=-1)
    return commits.issuperset(range(begin + 1, version + 1))


def _checkpoints(names: Iterable[str]) -> Iterator[int]:
    """Versions with a checkpoint, of whose parts none is missing."""
    found = Counter((m[1], m["parts"]) for name in names if (m := _CHECKPOINT.fullmatch(name)))
    return (int(version) for (version, parts), count in found.items() if count == int(parts or count))
