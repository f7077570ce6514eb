"""Opens tables as the state stores of Kafka Streams: tables of one's own, and those of a pipeline (KIP-617)."""

import os

from lakejoin.orchestration.config import Pipeline, pipeline_of
from lakejoin.orchestration.errors import unknown
from lakejoin.orchestration.lake_state.published_snapshot import published_snapshot
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.stores.kinds.key_value import KeyValueStore
from lakejoin.storage.stores.kinds.session import SessionStore
from lakejoin.storage.stores.kinds.versioned import VersionedKeyValueStore
from lakejoin.storage.stores.kinds.window import WindowStore
from lakejoin.storage.stores.pipeline.histories_and_streams import buffer_store, versioned_store
from lakejoin.storage.stores.pipeline.tables import joined_store, rows_store, subscription_store

__all__ = [
    "KeyValueStore",
    "PipelineStores",
    "SessionStore",
    "VersionedKeyValueStore",
    "WindowStore",
    "open_stores",
]


class PipelineStores:
    """The tables of a pipeline as one finished batch left them, whatever is being written meanwhile; none is written.

    Each method raises `WrongUsage` for a name that the file does not declare, or that has no such table.
    """

    def __init__(self, pipeline: Pipeline, batch: int | None = None) -> None:
        """Take the last finished batch, or the one with this number. Raises `WrongUsage` where there is none."""
        self._pipeline, self._lake = pipeline, Lake(pipeline.lake)
        self._snapshot = published_snapshot(Journal(self._lake), batch)

    def rows(self, table: str) -> KeyValueStore:
        """Return the current rows of a declared table by primary key; deleted rows are hidden."""
        if table not in self._pipeline.tables:
            raise unknown("table", table, self._pipeline.tables)
        return rows_store(self._lake, self._snapshot, self._pipeline.tables[table].spec)

    def versions(self, table: str) -> VersionedKeyValueStore:
        """Return the history of a versioned table."""
        known = {name: found for name, found in self._pipeline.tables.items() if found.versioned}
        if table not in known:
            raise unknown("versioned table", table, known)
        return versioned_store(self._lake, self._snapshot, known[table].spec)

    def joined(self, name: str) -> KeyValueStore:
        """Return the result of a join of tables, or of groups, by its key."""
        if name not in self._pipeline.kept_by_key:
            raise unknown("join of tables", name, self._pipeline.kept_by_key)
        return joined_store(self._lake, self._snapshot, self._pipeline.spec_of_join(name))

    def subscriptions(self, name: str) -> KeyValueStore:
        """Return the live subscriptions of a join by CombinedKey: foreign key, then primary key.

        name: of the join; of a star's join with one right side `STAR/SIDE`.
        """
        parts = {
            part.name: part
            for join in self._pipeline.kept_by_key
            for part in self._pipeline.spec_of_join(join).parts
        }
        if name not in parts:
            raise unknown("join", name, parts)
        return subscription_store(self._lake, self._snapshot, parts[name])

    def buffer(self, join: str) -> WindowStore:
        """Return what waits of a stream for its join, every record of a key and time."""
        known = {name: found for name, found in self._pipeline.joins_of_streams.items() if found.waits}
        if join not in known:
            raise unknown("join with a grace period", join, known)
        stream = self._pipeline.streams[known[join].stream]
        return buffer_store(self._lake, self._snapshot, self._pipeline.stream_join_spec(join), stream.spec)


def open_stores(pipeline: str | os.PathLike[str] | Pipeline, batch: int | None = None) -> PipelineStores:
    """Return the tables of a pipeline as stores, as its last finished batch left them, or another one.

    pipeline: the configuration file, or what `lakejoin.orchestration.config.load` made of it.

    Raises `ConfigurationError` for a file with mistakes, `WrongUsage` for a batch that is not finished.
    """
    return PipelineStores(pipeline_of(pipeline), batch)
