"""Which instructions a left change sends, case by case, and which subscriptions are live then.

The model of Kafka's join says what a key's only change in a batch sends; what several changes of a key in one
batch send is written out here, for Kafka has no batches.
"""

from collections.abc import Sequence
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

from lakejoin.transforms.foreign_key_join.subscriptions import (
    STEP,
    live_subscriptions,
    send_subscriptions,
    subscription_schema,
    subscriptions,
    with_previous,
)
from lakejoin.transforms.model.schemas import BATCH, HASH_TYPE, POSITION, POSITION_TYPE
from lakejoin.transforms.model.specs import How, JoinSpec
from reference.foreign_key_join import ForeignKeyJoin

pytestmark = pytest.mark.spark

Value = tuple[str | None, str] | None
"""Foreign key and another column of a left row; None: no row."""
Message = tuple[str | None, str, bool]
"""Foreign key, instruction, and whether it carries the hash of a row."""

DELETE_NO, DELETE_AND = "DELETE_KEY_NO_PROPAGATE", "DELETE_KEY_AND_PROPAGATE"
NULL_IF_NO, ONLY_IF = "PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE", "PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE"

_LEFT = StructType([StructField("id", StringType()), StructField("fk", StringType())])
_RIGHT = StructType([StructField("code", StringType())])
_JOIN = JoinSpec("enriched", "orders", "customers", _LEFT, ("id",), _RIGHT, ("code",), ("fk",), "left")
_CHANGES = StructType([
    StructField("primary_key", _JOIN.primary_key_type),
    StructField(POSITION, POSITION_TYPE),
    StructField("foreign_key", _JOIN.foreign_key_type),
    StructField("hash", HASH_TYPE),
])  # fmt: skip
_LIVE = StructType([
    StructField("primary_key", _JOIN.primary_key_type), StructField("foreign_key", _JOIN.foreign_key_type)
])  # fmt: skip


def position(line: int) -> tuple[None, str, int]:
    """Where a record stands in the only file."""
    return (None, "orders.jsonl", line)


def hash_of(value: Value) -> tuple[int, int, int] | None:
    """A hash that tells values apart; null for no row."""
    return None if value is None else (1, sum(map(ord, f"{value[0]}/{value[1]}")), len(str(value[0])))


def foreign_key(value: Value) -> tuple[str] | None:
    """The foreign key as a struct; null without a row, or where it is null."""
    return None if value is None or value[0] is None else (value[0],)


def sent(spark: SparkSession, histories: Sequence[Sequence[Value]], how: How) -> list[list[Row]]:
    """Messages of each key, in the order of position and step: its row before the batch, then its changes."""
    changes = [
        ((str(key),), position(line), foreign_key(value), hash_of(value))
        for key, (_, *values) in enumerate(histories)
        for line, value in enumerate(values, start=1)
    ]
    before = [
        ((str(key),), foreign_key(first)) for key, (first, *_) in enumerate(histories) if first is not None
    ]
    with_all = with_previous(spark.createDataFrame(changes, _CHANGES), spark.createDataFrame(before, _LIVE))
    found: list[list[Row]] = [[] for _ in histories]
    for row in send_subscriptions(with_all, how).orderBy(POSITION, STEP).collect():
        found[int(row["primary_key"]["id"])].append(row)
    return found


def messages(rows: Sequence[Row]) -> list[Message]:
    """What the messages say."""
    return [
        (row["foreign_key"] and row["foreign_key"]["code"], row["instruction"], row["hash"] is not None)
        for row in rows
    ]


STATES: tuple[Value, ...] = (None, (None, "a"), (None, "b"), ("f", "a"), ("f", "b"), ("g", "a"), ("", "a"))


@pytest.mark.bad_input(3)
@pytest.mark.parametrize("how", ["inner", "left"])
def test_only_change_of_a_key_sends_what_kafka_sends(spark: SparkSession, how: How) -> None:
    """From no row, no foreign key or a foreign key to each of them, the same one or another."""
    model = ForeignKeyJoin(how, lambda value: value["fk"])
    moves = [(old, new) for old in STATES for new in STATES]

    found = sent(spark, moves, how)

    for (old, new), rows in zip(moves, found, strict=True):
        expected = model.send("k", *(value and {"fk": value[0], "v": value[1]} for value in (old, new)))
        told = [(m.foreign_key, str(m.instruction), m.hash is not None) for m in expected]
        assert messages(rows) == told, (old, new)


def test_messages_carry_the_hash_of_the_new_value(spark: SparkSession) -> None:
    """The one to the old foreign key too, for its answer must count as one to the new value."""
    (rows,) = sent(spark, [[("f", "a"), ("g", "b")]], "inner")

    assert [(row["instruction"], tuple(row["hash"])) for row in rows] == [
        (DELETE_NO, hash_of(("g", "b"))),
        (NULL_IF_NO, hash_of(("g", "b"))),
    ]


SEVERAL: list[tuple[str, list[Value], list[Message], list[Message]]] = [
    (
        "the last change is answered in any case, where it stays",
        [("f", "a"), ("f", "b"), ("f", "c")],
        [("f", ONLY_IF, True), ("f", NULL_IF_NO, True)],
        [("f", NULL_IF_NO, True), ("f", NULL_IF_NO, True)],
    ),
    (
        "there and back",
        [("f", "a"), ("g", "a"), ("f", "a")],
        [("f", DELETE_NO, True), ("g", NULL_IF_NO, True), ("g", DELETE_NO, True), ("f", NULL_IF_NO, True)],
        [("f", DELETE_NO, True), ("g", NULL_IF_NO, True), ("g", DELETE_NO, True), ("f", NULL_IF_NO, True)],
    ),
    (
        "to a foreign key and the same one again",
        [("f", "a"), ("g", "a"), ("g", "a")],
        [("f", DELETE_NO, True), ("g", NULL_IF_NO, True), ("g", NULL_IF_NO, True)],
        [("f", DELETE_NO, True), ("g", NULL_IF_NO, True), ("g", NULL_IF_NO, True)],
    ),
    (
        "deleted and inserted again",
        [("f", "a"), None, ("g", "a")],
        [("f", DELETE_AND, False), ("g", NULL_IF_NO, True)],
        [("f", DELETE_NO, False), (None, NULL_IF_NO, False), ("g", NULL_IF_NO, True)],
    ),
    (
        "deleted and inserted again without a foreign key",
        [("f", "a"), None, (None, "a")],
        [("f", DELETE_AND, False), (None, NULL_IF_NO, True)],
        [("f", DELETE_NO, False), (None, NULL_IF_NO, False), (None, NULL_IF_NO, True)],
    ),
    (
        "the foreign key goes at last: the answer comes without it",
        [("f", "a"), ("f", "b"), (None, "b")],
        [("f", ONLY_IF, True), ("f", DELETE_NO, True), (None, NULL_IF_NO, True)],
        [("f", NULL_IF_NO, True), ("f", DELETE_NO, True), (None, NULL_IF_NO, True)],
    ),
    (
        "the foreign key goes and comes back elsewhere",
        [("f", "a"), (None, "a"), ("g", "a")],
        [("f", DELETE_AND, True), ("g", NULL_IF_NO, True)],
        [("f", DELETE_NO, True), (None, NULL_IF_NO, True), ("g", NULL_IF_NO, True)],
    ),
    (
        "the foreign key goes, then the row",
        [("f", "a"), (None, "a"), None],
        [("f", DELETE_AND, True), (None, NULL_IF_NO, False)],
        [("f", DELETE_NO, True), (None, NULL_IF_NO, True), (None, NULL_IF_NO, False)],
    ),
    (
        "inserted and deleted",
        [None, ("f", "a"), None],
        [("f", ONLY_IF, True), ("f", DELETE_NO, False), (None, NULL_IF_NO, False)],
        [("f", NULL_IF_NO, True), ("f", DELETE_NO, False), (None, NULL_IF_NO, False)],
    ),
    (
        "deleted twice: a result from before would have gone with the first",
        [("f", "a"), None, None],
        [("f", DELETE_AND, False), (None, NULL_IF_NO, False)],
        [("f", DELETE_NO, False), (None, NULL_IF_NO, False), (None, NULL_IF_NO, False)],
    ),
    (
        "never a foreign key",
        [None, (None, "a"), (None, "b")],
        [(None, NULL_IF_NO, True)],
        [(None, NULL_IF_NO, True), (None, NULL_IF_NO, True)],
    ),
]


@pytest.mark.bad_input(25)
@pytest.mark.parametrize("how", ["inner", "left"])
def test_last_of_several_changes_of_a_key_is_always_answered(spark: SparkSession, how: How) -> None:
    """Answers to the earlier ones are stale by their hash, also the one that would have retracted a result."""
    found = sent(spark, [history for _, history, _, _ in SEVERAL], how)

    for (name, _, inner, left), rows in zip(SEVERAL, found, strict=True):
        assert messages(rows) == (inner if how == "inner" else left), name


def test_change_is_given_the_row_before_it(spark: SparkSession) -> None:
    """The stored row for a key's first change of the batch, else the change before; by position, not by arrival."""
    changes = [
        (("k",), position(10), ("h",), hash_of(("h", "a"))),
        (("k",), position(9), None, None),
        (("k",), position(2), ("g",), hash_of(("g", "a"))),
        (("new",), position(1), ("f",), hash_of(("f", "a"))),
    ]
    before = spark.createDataFrame([(("k",), ("f",)), (("other",), ("f",))], _LIVE)

    rows = with_previous(spark.createDataFrame(changes, _CHANGES), before).orderBy(POSITION).collect()

    assert [
        (
            row["primary_key"]["id"],
            row["previous_exists"],
            row["previous_foreign_key"] and row["previous_foreign_key"]["code"],
            row["changes_of_key"],
            row["last_of_key"],
        )
        for row in rows
    ] == [
        ("new", False, None, 1, True),
        ("k", True, "f", 3, False),
        ("k", True, "g", 3, False),
        ("k", False, None, 3, True),
    ]


def log_frame(spark: SparkSession, rows: Sequence[tuple[Any, ...]]) -> DataFrame:
    """A subscription log: foreign key, primary key, number of the hash, instruction, batch, line, step."""
    schema = subscription_schema(_JOIN)
    return spark.createDataFrame(
        [
            (foreign and (foreign,), (primary,), (1, number, 0), instruction, batch, position(line), step)
            for foreign, primary, number, instruction, batch, line, step in rows
        ],
        schema,
    )


def test_last_instruction_decides_whether_a_subscription_is_live(spark: SparkSession) -> None:
    """By batch, position and step; with the last hash, for each pair of foreign and primary key on its own.

    What has no batch yet was sent by the one under way, which is the last.
    """
    log = [
        ("f", "replaced", 1, NULL_IF_NO, 1, 9, 1),
        ("f", "replaced", 2, ONLY_IF, 2, 1, 1),
        ("f", "deleted", 1, ONLY_IF, 1, 1, 1),
        ("f", "deleted", 2, DELETE_NO, 1, 2, 0),
        ("f", "retracted", 1, ONLY_IF, 1, 1, 1),
        ("f", "retracted", 2, DELETE_AND, 2, 1, 0),
        ("f", "back", 3, NULL_IF_NO, 1, 3, 1),
        ("f", "back", 2, DELETE_NO, 1, 2, 0),
        ("g", "back", 2, NULL_IF_NO, 1, 2, 1),
        ("g", "back", 3, DELETE_NO, 1, 3, 0),
        ("f", "resubscribed in one change", 1, DELETE_NO, 1, 1, 0),
        ("f", "resubscribed in one change", 1, NULL_IF_NO, 1, 1, 1),
        (None, "without", 1, NULL_IF_NO, 1, 1, 1),
        ("f", "deleted under way", 1, NULL_IF_NO, 7, 9, 1),
        ("f", "deleted under way", 2, DELETE_NO, None, 1, 0),
    ]
    frame = log_frame(spark, log)

    last = {
        (row["foreign_key"]["code"], row["primary_key"]["id"]): row for row in subscriptions(frame).collect()
    }
    live = {
        (row["foreign_key"]["code"], row["primary_key"]["id"], row["hash"]["high"])
        for row in live_subscriptions(frame).collect()
    }

    assert {key: (row["instruction"], row["hash"]["high"], row[BATCH]) for key, row in last.items()} == {
        ("f", "replaced"): (ONLY_IF, 2, 2),
        ("f", "deleted"): (DELETE_NO, 2, 1),
        ("f", "retracted"): (DELETE_AND, 2, 2),
        ("f", "back"): (NULL_IF_NO, 3, 1),
        ("g", "back"): (DELETE_NO, 3, 1),
        ("f", "resubscribed in one change"): (NULL_IF_NO, 1, 1),
        ("f", "deleted under way"): (DELETE_NO, 2, None),
    }
    assert live == {("f", "replaced", 2), ("f", "back", 3), ("f", "resubscribed in one change", 1)}


def test_frames_have_the_columns_of_the_log(spark: SparkSession) -> None:
    """What is sent and what a fold keeps: both are rows of the same tables."""
    names = subscription_schema(_JOIN).names
    frame = log_frame(spark, [])
    changes = with_previous(spark.createDataFrame([], _CHANGES), spark.createDataFrame([], _LIVE))

    assert send_subscriptions(changes, "inner").columns == names
    assert sorted(subscriptions(frame).columns) == sorted(names)
    assert frame.schema[STEP].dataType == LongType()
