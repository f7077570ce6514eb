"""Streams, versioned tables and their joins in a configuration file: what they become, and what is refused."""

from datetime import timedelta

import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from lakejoin.orchestration.config import ConfigurationError, Pipeline, load_text
from lakejoin.transforms.model.schemas import POSITION_TYPE, TIME
from lakejoin.transforms.model.specs import StreamJoinSpec

SOUND = """\
name: clicks
lake: ./lake
tables:
  prices:
    source: {format: jsonl, path: prices.jsonl}
    columns: {item: string, price: bigint, at: timestamp}
    key: [item]
    event_time: at
    versioned: {history_retention: 10 days}
  items:
    source: {format: jsonl, path: items.jsonl}
    columns: {item: string, label: string}
    key: [item]
streams:
  clicks:
    source: {format: jsonl, path: "clicks/{date}.jsonl"}
    columns: {id: bigint, item: string, kind: string, at: timestamp}
    key: [id]
    event_time: at
    where: "kind = 'buy'"
joins:
  priced: {stream: clicks, table: prices, foreign_key: [item], how: left, grace: 2 hours}
  labelled: {stream: clicks, table: items, foreign_key: ["upper(item)"], how: inner, prefix: item_}
"""

MISTAKES = {
    "grace on an unversioned table": (
        "prefix: item_", "prefix: item_, grace: 1 hour",
        (
            "23: joins.labelled.grace: needs a versioned table, and 'items' is none: what it learns late would "
            "overwrite what was there; declare `versioned` on the table, or remove grace"
        ),
    ),
    "grace longer than the retention": (
        "grace: 2 hours", "grace: 11 days",
        (
            "22: joins.priced.grace: 11 days is longer than the history_retention of 'prices' (10 days): the "
            "version that a record waits for could be gone; expected at most that"
        ),
    ),
    "late without grace": (
        "prefix: item_", "prefix: item_, late: join",
        "23: joins.labelled.late: needs grace: without it no record is late; remove it",
    ),
    "a stream without event time": (
        "    event_time: at\n    where", "    where",
        (
            "15: streams.clicks.event_time: required, but not given: Column of type `timestamp` that says when the "
            "event happened"
        ),
    ),
    "event time of another type": (
        "    event_time: at\n    where", "    event_time: kind\n    where",
        "19: streams.clicks.event_time: the column 'kind' is string; expected a column of type timestamp",
    ),
    "a versioned table without event time": (
        "    event_time: at\n    versioned", "    versioned",
        "8: tables.prices.versioned: needs event_time, by which versions are ordered; name a column of type timestamp",
    ),
    "a column named like the validity": (
        "price: bigint", "valid_to: bigint",
        (
            "6: tables.prices.columns.valid_to: the name is taken in a versioned table (valid_from, valid_to); "
            "rename the column"
        ),
    ),
    "a condition that is none": (
        "kind = 'buy'", "id",
        "20: streams.clicks.where: 'id' is bigint; expected a condition, which is true or false",
    ),
    "a condition that reads the clock": (
        "kind = 'buy'", "at < now()",
        (
            "20: streams.clicks.where: 'at < now()' calls 'now', which gives another value each time or place it "
            "runs; a condition is a deterministic scalar expression over the row"
        ),
    ),
    "a table in place of a stream": (
        "stream: clicks, table: prices", "stream: items, table: prices",
        "22: joins.priced.stream: 'items' is a table; expected a stream (streams: clicks)",
    ),
    "an unknown table": (
        "table: prices", "table: price",
        "22: joins.priced.table: no table is named 'price'; did you mean 'prices'? (tables: prices, items)",
    ),
    "a stream as a left side": (
        "stream: clicks, table: items", "left: clicks, right: items",
        (
            "23: joins.labelled.left: 'clicks' is a stream; join it with `stream` and `table` in place of `left` and "
            "`right`"
        ),
    ),
    "the join of a stream as a left side": (
        'stream: clicks, table: items, foreign_key: ["upper(item)"]',
        "left: priced, right: items, foreign_key: [item]",
        "23: joins.labelled.left: 'priced' is the join of a stream, and only adds rows; begin with a table",
    ),
    "another type of foreign key": (
        "foreign_key: [item]", "foreign_key: [id]",
        (
            "22: joins.priced.foreign_key[0]: 'id' is bigint, but the right key prices.item is string; expected "
            'exactly the same type, as in "cast(id as string)"'
        ),
    ),
    "a name that is taken": (
        "streams:\n",
        "streams:\n  items: {source: {format: jsonl, path: x}, columns: {at: timestamp}, key: [at], event_time: at}\n",
        "15: streams.items: a table is named 'items', too; tables, streams and joins share their names",
    ),
    "two columns of one name": (
        ", prefix: item_", ", prefix: ''",
        (
            "23: joins.labelled.prefix: with the prefix '' the left and the right side both have item; choose another "
            "prefix"
        ),
    ),
}  # fmt: skip


def pipeline(text: str = SOUND) -> Pipeline:
    """Read a text."""
    return load_text(text, "lakejoin.yaml")


def test_stream_becomes_a_join_with_its_grace() -> None:
    """The specification has the sides, the grace and what becomes of late records."""
    spec = pipeline().stream_join_spec("priced")

    assert isinstance(spec, StreamJoinSpec)
    assert (spec.left, spec.right, spec.foreign_key) == ("clicks", "prices", ("`item`",))
    assert (spec.grace, spec.drops_late, spec.as_of) == (timedelta(hours=2), True, True)
    assert not pipeline().stream_join_spec("labelled").as_of


def test_condition_named_like_an_expression_is_that_column() -> None:
    """As in a foreign key; the fingerprint has what the file says."""
    found = pipeline(SOUND.replace("kind: string", "is-new: boolean").replace("kind = 'buy'", "is-new"))

    assert (found.streams["clicks"].condition, found.streams["clicks"].where) == ("`is-new`", "is-new")
    assert pipeline().streams["clicks"].condition == "kind = 'buy'"


def test_kinds_of_joins_are_told_apart() -> None:
    """Joins stand below one key, each with the keys of its own kind."""
    text = SOUND + "  paired: {left: items, right: items, foreign_key: [item], how: inner}\n"

    assert list(pipeline(text).joins_of_tables) == ["paired"]
    assert list(pipeline(text).joins_of_streams) == ["priced", "labelled"]


def test_versions_are_ordered_by_their_time_first() -> None:
    """What is parsed has the declared order alone; applying sees the event time before it."""
    spec = pipeline().tables["prices"].spec

    assert spec.sequence == StructType([StructField(TIME, TimestampType()), *POSITION_TYPE])
    assert spec.as_read.sequence == POSITION_TYPE
    assert spec.history_retention == timedelta(days=10)
    assert spec.columns["price"] == StructField("price", LongType())


def test_tables_without_history_are_ordered_as_before() -> None:
    """Only versioned tables and streams mind how far ahead a record is."""
    items, clicks = pipeline().tables["items"].spec, pipeline().streams["clicks"].spec

    assert (items.sequence, items.max_future, items.as_read) == (POSITION_TYPE, None, items)
    assert (clicks.max_future, clicks.columns["kind"].dataType) == (timedelta(days=1), StringType())


def test_grace_may_be_as_long_as_the_history() -> None:
    """The version that a record waits for is remembered that long, at its last instant, too."""
    spec = pipeline(SOUND.replace("grace: 2 hours", "grace: 10 days")).stream_join_spec("priced")

    assert spec.grace == timedelta(days=10)


def test_late_records_are_dropped_or_joined_as_the_batch_began() -> None:
    """A part of them may be joined or in quarantine already."""
    from lakejoin.orchestration.lake_state.config_fingerprints import readings_of

    before, other = (pipeline(SOUND.replace("2 hours", f"2 hours{late}")) for late in ("", ", late: join"))
    found = readings_of(before).items() ^ readings_of(other).items()

    assert {name for name, _ in found} == {"joins/priced/late"}


def test_state_of_a_lake_depends_on_grace_and_not_on_what_becomes_of_late_records() -> None:
    """With another grace what waits would be another range of the stream; `late` says only how a run goes on."""
    from lakejoin.orchestration.lake_state.config_fingerprints import shapes_of

    before = shapes_of(pipeline())

    assert shapes_of(pipeline(SOUND.replace("grace: 2 hours", "grace: 2 hours, late: join"))) == before
    assert shapes_of(pipeline(SOUND.replace("grace: 2 hours", "grace: 3 hours"))) != before


@pytest.mark.parametrize(("old", "new", "message"), MISTAKES.values(), ids=MISTAKES)
def test_mistake_gets_its_message(old: str, new: str, message: str) -> None:
    """Each mistake is named with its line, when the file is read."""
    assert SOUND.count(old) == 1

    with pytest.raises(ConfigurationError) as refused:
        pipeline(SOUND.replace(old, new))

    assert [str(problem) for problem in refused.value.problems] == [f"lakejoin.yaml:{message}"]
