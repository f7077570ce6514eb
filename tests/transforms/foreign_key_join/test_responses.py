"""What the right side answers: to each instruction, and to each subscriber when a right row changes."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from lakejoin.transforms.foreign_key_join.responses import (
    answer_right_changes,
    answer_subscriptions,
    last_changes,
    response_schema,
)
from lakejoin.transforms.foreign_key_join.subscriptions import subscription_schema
from lakejoin.transforms.model.schemas import BATCH, HASH_TYPE, POSITION, POSITION_TYPE
from lakejoin.transforms.model.specs import JoinSpec

pytestmark = pytest.mark.spark

DELETE_NO, DELETE_AND = "DELETE_KEY_NO_PROPAGATE", "DELETE_KEY_AND_PROPAGATE"
NULL_IF_NO, ONLY_IF = "PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE", "PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE"

_LEFT = StructType([StructField("id", StringType()), StructField("fk", StringType())])
_RIGHT = StructType([StructField("code", StringType())])
_JOIN = JoinSpec("enriched", "orders", "customers", _LEFT, ("id",), _RIGHT, ("code",), ("fk",), "left")
_ROWS = StructType([
    StructField("primary_key", _JOIN.foreign_key_type),
    StructField("hash", HASH_TYPE),
    StructField("position", POSITION_TYPE),
])  # fmt: skip

LEFT_HASH, RIGHT_HASH = (1, 11, 12), (1, 21, 22)


def place(line: int) -> tuple[None, str, int]:
    """A position of a record in some file."""
    return (None, "rows.jsonl", line)


def right_rows(spark: SparkSession, *rows: tuple[str, tuple[int, int, int] | None, int]) -> DataFrame:
    """Right rows by key, hash (None for a tombstone) and line."""
    return spark.createDataFrame([((key,), hashed, place(line)) for key, hashed, line in rows], _ROWS)


def log(spark: SparkSession, *messages: tuple[str, str | None, str, int], batch: int | None = 1) -> DataFrame:
    """A subscription log by primary key, foreign key, instruction and line, all with the same hash."""
    rows = [
        (foreign and (foreign,), (primary,), LEFT_HASH, instruction, batch, place(line), 1)
        for primary, foreign, instruction, line in messages
    ]
    return spark.createDataFrame(rows, subscription_schema(_JOIN))


def answers(frame: DataFrame) -> dict[str, Row]:
    """The answers by primary key, each key answered once."""
    rows = frame.collect()
    found = {row["primary_key"]["id"]: row for row in rows}
    assert len(found) == len(rows)
    return found


INSTRUCTIONS: list[tuple[str, str | None, str, Any]] = [
    ("subscribes, and there is a row", "live", NULL_IF_NO, (RIGHT_HASH, 7)),
    ("subscribes, and the row was deleted", "deleted", NULL_IF_NO, (None, 8)),
    ("subscribes, and there never was a row", "unknown", NULL_IF_NO, (None, None)),
    ("names no foreign key", None, NULL_IF_NO, (None, None)),
    ("asks for a row, and there is one", "live", ONLY_IF, (RIGHT_HASH, 7)),
    ("asks for a row that was deleted", "deleted", ONLY_IF, "silence"),
    ("asks for a row that never was", "unknown", ONLY_IF, "silence"),
    ("goes, and the row is there", "live", DELETE_AND, (None, 7)),
    ("goes, and there is no row", "unknown", DELETE_AND, (None, None)),
    ("goes silently", "live", DELETE_NO, "silence"),
]


def test_instruction_decides_what_a_subscriber_is_answered(spark: SparkSession) -> None:
    """The right value, null or silence; always with the hash and the position of the message."""
    right = right_rows(spark, ("live", RIGHT_HASH, 7), ("deleted", None, 8), ("not asked for", RIGHT_HASH, 9))
    messages = log(
        spark, *[(name, key, how, line) for line, (name, key, how, _) in enumerate(INSTRUCTIONS, start=1)]
    )

    found = answers(answer_subscriptions(messages, right))

    for line, (name, key, _, expected) in enumerate(INSTRUCTIONS, start=1):
        if expected == "silence":
            assert name not in found
            continue
        row = found.pop(name)
        assert (row["hash"], row[POSITION], row["cause"]) == (LEFT_HASH, place(line), "subscription"), name
        assert row["foreign_key"] == (key and (key,)), name
        right_hash, right_line = expected
        assert (row["right_hash"], row["right_position"]) == (right_hash, right_line and place(right_line)), (
            name
        )
    assert not found


def test_right_change_answers_every_subscriber_of_exactly_its_key(spark: SparkSession) -> None:
    """With the hash that each left behind, for a tombstone too; a key that begins like another is another."""
    store = log(
        spark,
        ("first", "changed", NULL_IF_NO, 1),
        ("second", "changed", ONLY_IF, 2),
        ("third", "deleted", ONLY_IF, 3),
        ("of a longer key", "changed too", ONLY_IF, 4),
        ("of another key", "other", ONLY_IF, 5),
    )
    changed = right_rows(
        spark, ("changed", RIGHT_HASH, 7), ("deleted", None, 8), ("without subscribers", RIGHT_HASH, 9)
    )

    found = answers(answer_right_changes(changed, store))

    assert {key: (row["right_hash"], row["right_position"]) for key, row in found.items()} == {
        "first": (RIGHT_HASH, place(7)),
        "second": (RIGHT_HASH, place(7)),
        "third": (None, place(8)),
    }
    assert {(row["hash"], row["cause"]) for row in found.values()} == {(LEFT_HASH, "right_change")}
    assert all(row[POSITION] == row["right_position"] for row in found.values())


def test_right_change_answers_no_subscription_that_its_batch_has_answered(spark: SparkSession) -> None:
    """With the same value: it would only be superseded. One that asks for a value and got none waits for this one."""
    sent = log(
        spark,
        ("got the value", "changed", ONLY_IF, 1),
        ("got the value, too", "changed", NULL_IF_NO, 2),
        ("got null", "deleted", NULL_IF_NO, 3),
        ("got nothing", "deleted", ONLY_IF, 4),
        batch=None,
    )
    changed = right_rows(spark, ("changed", RIGHT_HASH, 7), ("deleted", None, 8))

    found = answers(answer_right_changes(changed, sent))

    assert {key: row["right_hash"] for key, row in found.items()} == {"got nothing": None}


def test_subscribers_are_told_the_last_change_of_a_right_key(spark: SparkSession) -> None:
    """Of several in a batch by position, be it a deletion or a return."""
    changes = [
        ("a", RIGHT_HASH, 2),
        ("a", None, 1),
        ("b", None, 4),
        ("b", RIGHT_HASH, 3),
        ("c", RIGHT_HASH, 5),
    ]

    found = last_changes(right_rows(spark, *changes)).collect()

    assert {(row["primary_key"]["code"], row["hash"], row["position"]["line"]) for row in found} == {
        ("a", RIGHT_HASH, 2),
        ("b", None, 4),
        ("c", RIGHT_HASH, 5),
    }


def test_both_kinds_of_answers_are_rows_of_one_log(spark: SparkSession) -> None:
    """Same columns and types; resolution and batch come later, and a join by hashes leaves out the marks."""
    messages, right = log(spark), right_rows(spark)
    frames: Iterable[DataFrame] = (
        answer_subscriptions(messages, right),
        answer_right_changes(right, messages),
    )

    schema = response_schema(replace(_JOIN, resolution="highwater"))
    expected = [(f.name, f.dataType) for f in schema if f.name not in ("resolution", BATCH)]
    for frame in frames:
        assert [(f.name, f.dataType) for f in frame.schema] == expected
