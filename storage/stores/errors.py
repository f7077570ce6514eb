"""Defines the errors of the state stores.

Each message says which method was called, where, what was expected, what was found and what to do.

StoreError (a LakejoinError)
├── NullKey             a key or a part of it, a prefix, a time, or what is to be put is null
├── WrongKey            a key, prefix, bound, time, value or entry is not of the store's columns and types
├── WrongRange          a session, or the span of versions that is asked for, ends before it begins
├── WrongDuration       a retention or a length of windows that no store can have
├── StoreReadOnly       written without a Spark session, or a table that only a pipeline may write
└── StoreUnreadable     a table that is no store of this kind, or that cannot be read file by file
"""

from lakejoin.storage.errors import LakejoinError


class StoreError(LakejoinError):
    """Base of what can be wrong with the use of a store."""

    method: str | None = None
    """Name of the method that was called, which need not be the one that noticed."""

    def __str__(self) -> str:
        """Return the message, behind the name of the method."""
        message = super().__str__()
        return message if self.method is None else f"{self.method}(): {message}"


class NullKey(StoreError):
    """A key, prefix, time or list of entries is null: Kafka raises a NullPointerException; nothing was written."""


class WrongKey(StoreError):
    """A key, prefix, bound, time, value or entry does not fit the columns of the store; nothing was written."""


class WrongRange(StoreError):
    """A session or a span of versions ends before it begins: Kafka raises an IllegalArgumentException."""


class WrongDuration(StoreError):
    """A store cannot be made with such a retention or length of windows: Kafka raises an IllegalArgumentException."""


class StoreReadOnly(StoreError):
    """What was opened for reading was written to."""


class StoreUnreadable(StoreError):
    """A Delta table that is not such a store, or has features by which its files alone do not tell its rows."""
