"""Finds and measures what topics of Kafka have that is not read, and reads it by what the values are.

A part is a partition: its lines are offsets plus one, so the lines after `from_line` are the offsets from there on. A
broker is asked what there is, and a plan says which of it a batch reads; no group of consumers keeps offsets.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from storage.errors import SourceChanged, SourceRefused, SourceTrimmed
from storage.sources.files.source_files import FoundFile
from storage.sources.formats.debezium import DebeziumRecords
from storage.sources.formats.jsonl import JsonRecords
from storage.sources.formats.source_format import (
    Known,
    Look,
    Ranges,
    Reached,
    SourceFormat,
    SourceSpec,
    Waiting,
)
from storage.sources.formats.text_records import LineRecords
from storage.sources.kafka import topic_client
from storage.sources.kafka.numbered_values import as_text, is_numbered, numbers_in
from storage.sources.kafka.schema_registry import schema_of
from storage.sources.kafka.topic_client import Extent, Partition, TopicClient, TopicState
from storage.sources.kafka.topic_records import KEY, VALUE, event_lines, read_topics, row_lines
from storage.sources.kafka.topics import Topics, part_name, partition_of
from storage.sources.planned.planned_file import PlannedFile
from storage.sources.text.column_preview import RECORDS, describes, names_of
from transforms.parsing.options import ParseOptions

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
        """List the partitions with offsets that no plan has."""
        parts = list(self._measured(source, known))
        unread = [part for part in parts if part.records or (part.waits and part.name not in known)]
        found = (FoundFile(part.path, part.name, None, part.to_line, 0) for part in unread)
        reached = (Reached(part.name, part.from_line, part.to_line) for part in parts)
        return Waiting(tuple(found), len(parts), reached=tuple(reached))

    def unread(
        self, source: SourceSpec, known: Known, look: Look, spark: SparkSession | None
    ) -> Iterator[PlannedFile]:
        """Yield what each partition has behind what is known; a new one though it be empty, to be known from now on."""
        return (part for part in self._measured(source, known) if part.records or part.name not in known)

    def check_same(self, source: SourceSpec, parts: Ranges, *, thoroughly: bool) -> None:
        """See that the topics are the same, and `thoroughly` that all offsets of the parts are there."""
        if not parts:
            return
        client = self._client()
        states = client.states()
        for part in parts:
            self._check_identity(part, states)
        if thoroughly:
            extents = client.extents([partition_of(part) for part in parts])
            for part in parts:
                extent = extents[partition_of(part)]
                self._check_end(part, extent)
                if part.records and extent.begin > part.from_line:
                    raise SourceTrimmed(
                        f"{part.path}: offsets {part.from_line} to {min(extent.begin, part.to_line) - 1} of partition "
                        f"{partition_of(part)[1]} are gone, which a batch was planned with: retention removed them, or "
                        f"somebody did; the first there is now is {extent.begin}. Nothing has them any more but a copy "
                        "of the topic."
                    )

    def columns(self, source: SourceSpec, newest: FoundFile | None) -> list[str]:
        """Look at the last records of each partition."""
        client = self._client()
        wanted = [at for at, _ in _partitions(client.states())]
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

    def _client(self) -> TopicClient:
        return topic_client.connect(self._known_topics)

    def _measured(self, source: SourceSpec, known: Known) -> Iterator[PlannedFile]:
        """Every partition with what it has behind what is known, in the order of their names."""
        client = self._client()
        states = client.states()
        there = list(_partitions(states))
        self._check_grown(there, known)
        extents = client.extents([at for at, _ in there])
        first = self._starts(client, [at for at, _ in there if part_name(*at) not in known], extents, known)
        for at, identity in there:
            topic, partition = at
            name, extent = part_name(topic, partition), extents[at]
            before = known.get(name)
            if before is not None:
                self._check_identity(before, states)
                self._check_end(before, extent)
            start = self._next(before, partition, extent) if before is not None else first[at]
            yield PlannedFile(
                table=source.table, path=self._known_topics.path(topic), name=name, date=None, size=extent.end,
                modified=0, fingerprint=identity, lines=extent.end, complete=True, from_line=start, to_line=extent.end,
            )  # fmt: skip

    def _next(self, before: PlannedFile, partition: int, extent: Extent) -> int:
        """The offset behind what was read; a later one if it is declared, as what is before it is not wanted then."""
        declared, start = self._known_topics.start, before.to_line
        if isinstance(declared, Mapping) and declared.get(partition, 0) > start:
            start = min(declared[partition], extent.end)
        if extent.begin > start:
            raise SourceTrimmed(
                f"{before.path}: offsets {start} to {extent.begin - 1} of partition {partition} are gone, and no batch "
                f"has read them: retention removed them, or somebody did. Expected offset {start}, behind which "
                f"reading goes on; the first there is now is {extent.begin}. Load the table into a new lake from a "
                f"source that has all; or, to go on without them, write `start: {{{partition}: {extent.begin}}}` under "
                "source."
            )
        return start

    def _starts(
        self, client: TopicClient, new: list[Partition], extents: Mapping[Partition, Extent], known: Known
    ) -> dict[Partition, int]:
        """Where partitions begin that no plan knows."""
        begins, start = {at: extents[at].begin for at in new}, self._known_topics.start
        if not new or start == "earliest" or (known and not isinstance(start, Mapping)):
            return begins  # what is there of a partition that came later came later than the start
        if start == "latest":
            return {at: extents[at].end for at in new}
        if isinstance(start, datetime):
            found = client.offsets_at(new, start)
            return {at: extents[at].end if (offset := found[at]) is None else offset for at in new}
        return {at: self._declared(at, start, extents[at], known) for at in new}

    def _declared(self, at: Partition, start: Mapping[int, int], extent: Extent, known: Known) -> int:
        topic, partition = at
        if partition not in start and known:
            return extent.begin
        if partition not in start:
            raise SourceRefused(
                f"{self._known_topics.path(topic)}: has partition {partition}, for which `start` says no offset; "
                f"expected one for each, such as {partition}: {extent.begin}"
            )
        if not extent.begin <= start[partition] <= extent.end:
            raise SourceRefused(
                f"{self._known_topics.path(topic)}: partition {partition} has offsets {extent.begin} to {extent.end}; "
                f"found {start[partition]} in `start`"
            )
        return start[partition]

    def _check_identity(self, part: PlannedFile, states: Mapping[str, TopicState]) -> None:
        topic, partition = partition_of(part)
        state = states.get(topic)
        if state is None:
            return  # it is declared no more, and nothing of it is read
        same = not part.fingerprint or not state.identity or part.fingerprint == state.identity
        if not same or partition not in state.partitions:
            raise SourceChanged(
                f"{part.path}: is another topic than was read up to offset {part.to_line} of partition {partition}: it "
                f"was deleted and made anew (its broker calls it {state.identity}, and called it {part.fingerprint}). "
                "Its offsets begin again, so its records would stand before those that were read. Write them to a "
                "topic whose name comes later in the alphabet and name that one, or load it into a new lake."
            )

    def _check_end(self, part: PlannedFile, extent: Extent) -> None:
        if extent.end < part.to_line:
            raise SourceChanged(
                f"{part.path}: partition {partition_of(part)[1]} ends at offset {extent.end} now, and was read up to "
                f"{part.to_line}: records were lost, as when a broker takes over that lacks them, or the cluster is "
                "another one. Expected at least the same offsets; load the table into a new lake."
            )

    def _check_grown(self, there: Iterable[tuple[Partition, str]], known: Known) -> None:
        """Refuse new partitions where the place of a record orders the changes of its key: keys move to others."""
        if self._known_topics.is_ordered or not known:
            return
        last = max(known)
        for (topic, partition), _ in there:
            name = part_name(topic, partition)
            has_grown = any(other.rpartition("+")[0] == topic for other in known)
            if name not in known and (has_grown or name < last):
                what = (
                    f"partition {partition} was added"
                    if has_grown
                    else "stands before the topics that were read, by its name"
                )
                raise SourceRefused(
                    f"{self._known_topics.path(topic)}: {what} after reading began. A key may have moved to it, and "
                    "nothing but the place of its records orders the changes of a key. Expected a `sequence`: declare "
                    "one, such as `sequence: source` for events of Debezium, and load the topic into a new lake."
                )


_SHOWN = 20
"""Records of a partition whose names are looked at."""


def _partitions(states: Mapping[str, TopicState]) -> Iterator[tuple[Partition, str]]:
    """All partitions in the order of their names, each with the identity of its topic."""
    for topic, state in sorted(states.items()):
        for partition in state.partitions:
            yield (topic, partition), state.identity


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
