"""Says which offsets of topics no plan has, and refuses topics that are not those that plans have read.

A part is a partition: its lines are offsets plus one, so the lines after `from_line` are the offsets from there on.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from lakejoin.storage.errors import SourceChanged, SourceRefused, SourceTrimmed
from lakejoin.storage.sources.kafka.topic_client import Extent, Partition, TopicClient, TopicState
from lakejoin.storage.sources.kafka.topics import Topics, part_name, partition_of
from lakejoin.storage.sources.planned.planned_file import Known, PlannedFile


def measured(topics: Topics, client: TopicClient, table: str, known: Known) -> Iterator[PlannedFile]:
    """Yield every partition with what it has behind what is known, ordered by name. Raises `SourceError`."""
    states = client.states()
    there = list(partitions(states))
    _check_grown(topics, there, known)
    extents = client.extents([at for at, _ in there])
    first = _starts(topics, client, [at for at, _ in there if part_name(*at) not in known], extents, known)
    for at, identity in there:
        topic, partition = at
        name, extent = part_name(topic, partition), extents[at]
        before = known.get(name)
        if before is not None:
            _check_identity(before, states)
            _check_end(before, extent)
        start = _next(topics, before, partition, extent) if before is not None else first[at]
        yield PlannedFile(
            table=table, path=topics.path(topic), name=name, date=None, size=extent.end,
            modified=0, fingerprint=identity, lines=extent.end, complete=True, from_line=start, to_line=extent.end,
        )  # fmt: skip


def check_same(client: TopicClient, parts: Sequence[PlannedFile], *, thoroughly: bool) -> None:
    """See that topics are those that parts are of, and `thoroughly` that all their offsets are there.

    Raises `SourceChanged` and `SourceTrimmed`.
    """
    states = client.states()
    for part in parts:
        _check_identity(part, states)
    if not thoroughly:
        return
    extents = client.extents([partition_of(part) for part in parts])
    for part in parts:
        extent = extents[partition_of(part)]
        _check_end(part, extent)
        if part.records and extent.begin > part.from_line:
            raise SourceTrimmed(
                f"{part.path}: offsets {part.from_line} to {min(extent.begin, part.to_line) - 1} of partition "
                f"{partition_of(part)[1]} are gone, which a batch was planned with: retention removed them, or "
                f"somebody did; the first there is now is {extent.begin}. Nothing has them any more but a copy of the "
                "topic."
            )


def partitions(states: Mapping[str, TopicState]) -> Iterator[tuple[Partition, str]]:
    """Yield all partitions in the order of their names, each with the identity of its topic."""
    for topic, state in sorted(states.items()):
        for partition in state.partitions:
            yield (topic, partition), state.identity


def _next(topics: Topics, before: PlannedFile, partition: int, extent: Extent) -> int:
    """The offset behind what was read; a later one if it is declared, as what is before it is not wanted then."""
    declared, start = topics.start, before.to_line
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
    topics: Topics,
    client: TopicClient,
    new: list[Partition],
    extents: Mapping[Partition, Extent],
    known: Known,
) -> dict[Partition, int]:
    """Where partitions begin that no plan knows."""
    begins, start = {at: extents[at].begin for at in new}, topics.start
    if not new or start == "earliest" or (known and not isinstance(start, Mapping)):
        return begins  # what is there of a partition that came later came later than the start
    if start == "latest":
        return {at: extents[at].end for at in new}
    if isinstance(start, datetime):
        found = client.offsets_at(new, start)
        return {at: extents[at].end if (offset := found[at]) is None else offset for at in new}
    return {at: _declared(topics, at, start, extents[at], known) for at in new}


def _declared(topics: Topics, at: Partition, start: Mapping[int, int], extent: Extent, known: Known) -> int:
    topic, partition = at
    if partition not in start and known:
        return extent.begin
    if partition not in start:
        raise SourceRefused(
            f"{topics.path(topic)}: has partition {partition}, for which `start` says no offset; "
            f"expected one for each, such as {partition}: {extent.begin}"
        )
    if not extent.begin <= start[partition] <= extent.end:
        raise SourceRefused(
            f"{topics.path(topic)}: partition {partition} has offsets {extent.begin} to {extent.end}; "
            f"found {start[partition]} in `start`"
        )
    return start[partition]


def _check_identity(part: PlannedFile, states: Mapping[str, TopicState]) -> None:
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


def _check_end(part: PlannedFile, extent: Extent) -> None:
    if extent.end < part.to_line:
        raise SourceChanged(
            f"{part.path}: partition {partition_of(part)[1]} ends at offset {extent.end} now, and was read up to "
            f"{part.to_line}: records were lost, as when a broker takes over that lacks them, or the cluster is "
            "another one. Expected at least the same offsets; load the table into a new lake."
        )


def _check_grown(topics: Topics, there: Iterable[tuple[Partition, str]], known: Known) -> None:
    """Refuse new partitions where the place of a record orders the changes of its key: keys move to others."""
    if topics.is_ordered or not known:
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
                f"{topics.path(topic)}: {what} after reading began. A key may have moved to it, and "
                "nothing but the place of its records orders the changes of a key. Expected a `sequence`: declare "
                "one, such as `sequence: source` for events of Debezium, and load the topic into a new lake."
            )
