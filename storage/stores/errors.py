"""Defines the errors of the state stores.

Each message says what, where, what was found, what was expected and what to do.

StoreError (a LakejoinError)
├── NullKey             a key, or a part of it, is null; or a time is
├── WrongKey            a key, prefix, bound or value is not of the store's columns and types
├── StoreReadOnly       written without a Spark session, or a table that only a pipeline may write
└── StoreUnreadable     a table that is no store of this kind, or that cannot be read file by file
"""

from storage.errors import LakejoinError


class StoreError(LakejoinError):
    """Base of what can be wrong with the use of a store."""


class NullKey(StoreError):
    """A key or a time is null: Kafka raises a NullPointerException; nothing was written."""


class WrongKey(StoreError):
    """A key, bound or value does not fit the columns of the store."""


class StoreReadOnly(StoreError):
    """What was opened for reading was written to."""


class StoreUnreadable(StoreError):
    """A Delta table that is not such a store, or has features by which its files alone do not tell its rows."""
