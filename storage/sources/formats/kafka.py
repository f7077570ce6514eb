"""Reads topics of Kafka by what their values are: a format of a source.

A broker is asked what there is, and a plan says which of it a batch reads; no group of consumers keeps offsets.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakejoin.storage.errors import SourceRefused
from lakejoin.storage.sources.files.source_files import FoundFile
from lakejoin.storage.sources.formats.debezium import DebeziumRecords
from lakejoin.storage.sources.formats.jsonl import JsonRecords
from lakejoin.storage.sources.formats.source_format import (
    Look,
    Ranges,
    Reached,
    SourceFormat,
    SourceSpec,
    Waiting,
)
from lakejoin.storage.sources.formats.text_records import LineRecords
from lakejoin.storage.sources.kafka import topic_client
from lakejoin.storage.sources.kafka.numbered_values import as_text, is_numbered, numbers_in
from lakejoin.storage.sources.kafka.schema_registry import schema_of
from lakejoin.storage.sources.kafka.topic_client import Extent, TopicClient
from lakejoin.storage.sources.kafka.topic_records import KEY, VALUE, event_lines, read_topics, row_lines
from lakejoin.storage.sources.kafka.topics import Topics, part_name, partition_of
from lakejoin.storage.sources.kafka.unread_offsets import check_same, measured, partitions
from lakejoin.storage.sources.planned.planned_file import Known, PlannedFile
from lakejoin.storage.sources.text.column_preview import RECORDS, describes, names_of
from lakejoin.transforms.parsing.options import ParseOptions

_FOR_FILES = "is for files; a topic is named by bootstrap_servers and topic. Remove it"
_LIMITS_FILES = "limits files that are read whole; found format 'kafka'. Remove it"
_NOT_FOR: dict[tuple[str, ...], str] = {
    ("path",): _FOR_FILES,
    ("settle",): "is for files; what a topic has is whole. Remove it",
    ("file_order",): _FOR_FILES,
    ("one_per_line",): _FOR_FILES,
    **{("limits", name): _LIMITS_FILES for name in ("file", "ratio", "memory")},
}

_OF_EVENTS = {**DebeziumRecords.not_for, **_NOT_FOR}
_OF_ROWS = {**JsonRecords.not_for, **_NOT_FOR}


class TopicFormat(LineRecords):
    """Partitions of topics."""

    needs = ("bootstrap_servers", "topic", "value")
    is_dense = has_rows = False
    unit = "partitions"
    order = "offset within the partition"

    def __init__(self, topics: Topics | None = None) -> None:
        """Topics of a source; none where only the configuration is checked."""
        self._topics = topics

    def held(self, count: int) -> str:
        """Say how many partitions there are."""
        return f"has {count} partition{'s' * (count != 1)}"

    def waiting(self, source: SourceSpec, known: Known, look: Look) -> Waiting:
        """List the partitions with offsets that no plan has, each with the time of its first record that waits."""
        parts = list(self._measured(source, known))
        unread = [part for part in parts if part.records or (part.waits and part.name not in known)]
        starts = {partition_of(part): Extent(part.from_line, part.to_line) for part in unread if part.records}
        times = self._client().first_times(starts)
        found = (
            FoundFile(part.path, part.name, None, part.to_line, times.get(partition_of(part), 0))
            for part in unread
        )
        reached = (Reached(part.name, part.from_line, part.to_line) for part in parts)
        return Waiting(tuple(found), len(parts), reached=tuple(reached))

    def unread(
        self, source: SourceSpec, known: Known, look: Look, spark: SparkSession | None
    ) -> Iterator[PlannedFile]:
        """Yield what each partition has behind what is known; a new one though it be empty, to be known from now on."""
        return (part for part in self._measured(source, known) if part.records or part.name not in known)

    def check_same(self, source: SourceSpec, parts: Ranges, *, thoroughly: bool) -> None:
        """See that the topics are the same, and `thoroughly` that all offsets of the parts are there."""
        if parts:
            check_same(self._client(), parts, thoroughly=thoroughly)

    def columns(self, source: SourceSpec, newest: FoundFile | None) -> list[str]:
        """Look at the last records of each partition."""
        client = self._client()
        wanted = [at for at, _ in partitions(client.states())]
        found = client.extents(wanted)
        ends = {at: Extent(max(found[at].begin, found[at].end - _SHOWN), found[at].end) for at in wanted}
        rows = (self.row_of(record, source.row_op) for record in _objects(client.first_records(ends, _SHOWN)))
        return [name for name in names_of(rows) if name not in self._of_operation(source)]

    def says_types(self, ranges: Ranges) -> bool:
        """Look at the first records of each range. Raises `SourceError` for those that only a registry explains."""
        if self._known_topics.registry is not None:
            return True
        starts = {partition_of(part): Extent(part.from_line, part.to_line) for part in ranges if part.records}
        records = self._client().first_records(starts, RECORDS // max(len(starts), 1) + 1)
        if any(map(is_numbered, (value for _, value in records))):
            raise SourceRefused(
                f"{ranges[0].path}: its values begin with a zero byte and a number, as those do whose schema is in a "
                "registry; expected JSON. Write `registry: URL` under source"
            )
        return any(describes(text) for record in records for text in record if text is not None)

    def records(self, spark: SparkSession, ranges: Ranges) -> DataFrame:
        """Read ranges of offsets: position, context, key, value. Raises `SourceError`."""
        wanted = [part for part in ranges if part.records]
        extents = self._client().extents([partition_of(part) for part in wanted]) if wanted else {}
        begins = {part_name(*at): extent.begin for at, extent in extents.items()}
        records, registry = (
            read_topics(spark, self._known_topics, ranges, begins),
            self._known_topics.registry,
        )
        if registry is None:
            return records
        schemas = {number: schema_of(registry, number) for number in numbers_in(records, [KEY, VALUE])}
        key, value = F.col(KEY), F.col(VALUE)
        return records.withColumns(
            {KEY: as_text(key, schemas, with_schema=False), VALUE: as_text(value, schemas, with_schema=True)}
        )

    def _of_operation(self, source: SourceSpec) -> Sequence[str]:
        """Members of a row that are no columns."""
        return source.row_op.columns

    @property
    def _known_topics(self) -> Topics:
        assert self._topics is not None  # only the checks of a configuration know none
        return self._topics

    def _measured(self, source: SourceSpec, known: Known) -> Iterator[PlannedFile]:
        return measured(self._known_topics, self._client(), source.table, known)

    def _client(self) -> TopicClient:
        return topic_client.connect(self._known_topics)


_SHOWN = 20
"""Records of a partition whose names are looked at."""


def _objects(records: Iterable[tuple[bytes | None, bytes | None]]) -> Iterator[Any]:
    for _, value in records:
        try:
            yield json.loads(value or b"null")
        except (ValueError, RecursionError):
            continue


class DebeziumTopic(DebeziumRecords, TopicFormat):
    """Topics of events."""

    not_for = _OF_EVENTS
    envelope = tuple(name for name in DebeziumRecords.envelope if name != "offset")

    def lines(self, spark: SparkSession, options: ParseOptions, ranges: Ranges) -> DataFrame:
        """Read each record as an event with its key."""
        return event_lines(self.records(spark, ranges))

    def _of_operation(self, source: SourceSpec) -> Sequence[str]:
        return ()


class JsonTopic(JsonRecords, TopicFormat):
    """Topics of flat rows."""

    not_for = _OF_ROWS

    def lines(self, spark: SparkSession, options: ParseOptions, ranges: Ranges) -> DataFrame:
        """Read each value as a row."""
        return row_lines(self.records(spark, ranges), options.row_op)


VALUES: Mapping[str, Callable[[Topics | None], SourceFormat]] = {
    "debezium": DebeziumTopic,
    "jsonl": JsonTopic,
}
"""Formats of topics by what their values are."""
