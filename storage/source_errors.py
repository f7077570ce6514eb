"""Errors of source files: what a pipeline refuses to read, and what to do about it."""

from storage.errors import LakejoinError


class SourceError(LakejoinError):
    """A source file, or the place where it should be, cannot be used."""


class SourceNotFound(SourceError):
    """The file or its directory is not there; check the path and whether it was removed."""


class SourceRefused(SourceError):
    """What the path found is nothing that Lakejoin reads: a symlink, a date that does not exist."""


class SourceUnreadable(SourceError):
    """The file or directory is there, but may or can not be read: permissions, credentials, disk, network."""


class SourceChanged(SourceError):
    """Something before the end of what was read is different now; only lines behind it may be added."""


class SourceTooLarge(SourceError):
    """The file, a line of it or what it unpacks to is beyond the limits of its source."""


class SourceTrimmed(SourceError):
    """A part of a change feed was removed before it was read: what changed since cannot be told any more."""


class SourceBroken(SourceError):
    """The bytes are not what the format says: a torn gzip or Parquet file, another compression."""
