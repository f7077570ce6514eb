"""States how long a table remembers what was removed from it, in table properties that every engine respects."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from lakejoin.storage.delta_log.snapshot import reading_table
from lakejoin.storage.delta_table.log_cleanup import LOG_RETENTION
from lakejoin.storage.filesystem import quoted_uri
from lakejoin.storage.spark.start import NO_CLEANUP
from lakejoin.transforms.model.schemas import quoted

_FILES, _LOG = "delta.deletedFileRetentionDuration", "delta.logRetentionDuration"
_DEFAULTS = {_FILES: timedelta(days=7), _LOG: LOG_RETENTION}
"""Delta's properties, and what it assumes: how long it remembers files that were removed, and entries of its log."""

_PART = re.compile(r"(\d+) +(week|day|hour|minute|second|millisecond|microsecond)s?", re.IGNORECASE)
"""A part of an interval as Delta's properties have them, which know neither months nor years."""


@dataclass(frozen=True)
class Unstated:
    """Properties that a table lacks. Without them Delta would forget earlier, or refuse to vacuum so early."""

    properties: Mapping[str, str]

    @property
    def due(self) -> bool:
        """At once: what is forgotten meanwhile cannot be kept any more."""
        return self.any

    @property
    def any(self) -> bool:
        """Whether there are any."""
        return bool(self.properties)

    @property
    def why(self) -> str:
        """The properties, as text."""
        return ", ".join(f"{name} = {value}" for name, value in self.properties.items())


def unstated(path: str, retention: timedelta) -> Unstated:
    """Find what a table's properties do not say yet of a retention; nothing of Delta's own default.

    Also that its log is shortened by maintenance only, which a table of an earlier version of Lakejoin does not say.
    """
    found = _properties(path)
    text = f"interval {round(retention.total_seconds())} seconds"
    # entries of a log are small: Delta may keep them longer than files
    wanted = [_FILES] if retention <= LOG_RETENTION else [_FILES, _LOG]
    lacking = {
        name: text
        for name in wanted
        if found.get(name) != text and (name in found or retention != _DEFAULTS[name])
    }
    name, value = NO_CLEANUP
    return Unstated(lacking if found.get(name) == value else {**lacking, name: value})


def log_retention(path: str, retention: timedelta) -> timedelta:
    """How long a table's log remembers, once its properties state a retention: what else they say is respected."""
    stated = _properties(path).get(_LOG)
    if stated is None or retention > LOG_RETENTION:
        return max(retention, LOG_RETENTION)
    parts = {f"{unit.lower()}s": int(count) for count, unit in _PART.findall(stated)}
    return timedelta(**parts)


def state_retention(spark: SparkSession, path: str, retention: timedelta) -> None:
    """Put into a table's properties what they do not say yet."""
    missing = unstated(path, retention)
    if missing.any:
        stated = ", ".join(f"'{name}' = '{value}'" for name, value in missing.properties.items())
        spark.sql(f"ALTER TABLE delta.{quoted(path)} SET TBLPROPERTIES ({stated})")


def _properties(path: str) -> Mapping[str, str]:
    with reading_table(path):
        return DeltaTable(quoted_uri(path)).metadata().configuration
