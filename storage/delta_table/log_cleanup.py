"""Counts the entries of a table's Delta log: how many must be read to open the table, and which have expired."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import SparkSession

from lakejoin.storage.delta_log.live_files import StoredFile

ENTRIES_SINCE = 50
"""A checkpoint is due when so many commits were made since the last one: whoever opens the table reads them all.

Or when so many have expired: whoever opens it lists them all."""
LOG_RETENTION = timedelta(days=30)
"""How long Delta keeps entries that a checkpoint has made superfluous, unless a table states otherwise."""
_COMMIT = re.compile(r"_delta_log/(\d{20})\.json")
_CHECKPOINT = re.compile(r"_delta_log/(\d{20})\.checkpoint\..*parquet")


@dataclass(frozen=True)
class Entries:
    """The commits of a table that its log still has."""

    since: int
    """Commits since the last checkpoint."""
    expired: int
    """Commits before it that nothing needs any more."""
    needed: bool
    """Whether a pinned version would be lost with the entries that have expired."""

    @property
    def due(self) -> bool:
        """Whether a checkpoint is worth the work."""
        return max(self.since, self.expired) >= ENTRIES_SINCE and not self.needed

    @property
    def any(self) -> bool:
        """Whether a checkpoint would save anything."""
        return self.since + self.expired > 0 and not self.needed

    @property
    def why(self) -> str:
        """The figures that decide, as text."""
        return f"{self.since:,} commits since the last checkpoint, {self.expired:,} expired before it"


def commits_among(stored: Iterable[StoredFile]) -> dict[int, StoredFile]:
    """The commits among a table's files, by version."""
    return {int(match[1]): file for file in stored if (match := _COMMIT.fullmatch(file.name))}


def entries(
    stored: Sequence[StoredFile], now: datetime, pinned: Collection[int], retention: timedelta = LOG_RETENTION
) -> Entries:
    """Look at the log among a table's files. `retention`: how long it is to remember, as its properties say."""
    commits = commits_among(stored)
    checkpoints = [int(match[1]) for f in stored if (match := _CHECKPOINT.fullmatch(f.name))]
    newest, last = max(commits, default=0), max(checkpoints, default=-1)
    horizon = now.astimezone(UTC) - retention
    # Delta removes entries by whole days
    day = horizon.replace(hour=0, minute=0, second=0, microsecond=0)
    old = {version for version, file in commits.items() if file.modified < horizon}
    expired = sum(version < last and file.modified < day for version, file in commits.items())
    # with a checkpoint Delta removes entries that are older, and the versions that they lead to
    needed = any(version < newest and (version in old or version not in commits) for version in pinned)
    return Entries(newest - last, expired, needed)


def checkpoint(spark: SparkSession, path: str) -> None:
    """Write the state of a table into its log, and remove the entries that have expired.

    `NO_CLEANUP` in the table's properties keeps Delta from doing so with checkpoints of its own, which it writes within
    commits: it does not know what a batch under way pins.
    """
    jvm: Any = spark._jvm  # noqa: SLF001 - Delta has no public call for it
    none = jvm.scala.Option.empty()
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, path)  # noqa: SLF001
    snapshot = log.update(False, none, none)
    log.checkpoint(snapshot, none)
    by_day = getattr(log, "cleanUpExpiredLogs$default$4")()
    log.cleanUpExpiredLogs(snapshot, none, none, by_day)
