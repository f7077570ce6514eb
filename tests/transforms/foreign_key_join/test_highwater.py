"""The first draft's rule: of two values of a left key, which one an answer was given to, by place and not by hash."""

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BooleanType, LongType, StringType, StructField, StructType

from lakejoin.transforms.foreign_key_join.highwater import MARK, MARK_TYPE, highwater
from lakejoin.transforms.foreign_key_join.resolution import resolve_responses
from lakejoin.transforms.foreign_key_join.responses import (
    answer_right_changes,
    answer_subscriptions,
    response_schema,
)
from lakejoin.transforms.foreign_key_join.subscriptions import (
    live_subscriptions,
    send_subscriptions,
    subscription_schema,
)
from lakejoin.transforms.model.schemas import BATCH, HASH_TYPE, POSITION, POSITION_TYPE
from lakejoin.transforms.model.specs import JoinSpec

pytestmark = pytest.mark.spark

_KEY = StructType([StructField("id", StringType())])
_JOIN = JoinSpec(
    "joined", "left", "right", StructType([*_KEY, StructField("fk", StringType())]), ("id",),
    StructType([StructField("code", StringType())]), ("code",), ("fk",), "inner", resolution="highwater",
)  # fmt: skip
A = (1, 1, 1)
UNDER_WAY = None

Place = tuple[int | None, int | None]
"""Batch and line of a left change."""


def position(line: int | None) -> tuple[None, str, int] | None:
    """A place in some file; a change of another join's result has none."""
    return None if line is None else (None, "rows.jsonl", line)


def messages(spark: SparkSession, *sent: tuple[str, Place]) -> DataFrame:
    """What left keys told the right side."""
    fields = [
        ("primary_key", _KEY), ("hash", HASH_TYPE), (BATCH, LongType()), (POSITION, POSITION_TYPE)
    ]  # fmt: skip
    rows = [((key,), A, batch, position(line)) for key, (batch, line) in sent]
    return spark.createDataFrame(rows, StructType([StructField(*field) for field in fields]))


def resolutions(
    spark: SparkSession, answers: list[tuple[str, Place]], sent: list[tuple[str, Place]]
) -> list[str]:
    """What becomes of answers, in their order, each to the same hash and of the same right value."""
    fields: list[tuple[str, Any]] = [
        ("primary_key", _KEY), ("hash", HASH_TYPE), (MARK, MARK_TYPE), ("right_position", POSITION_TYPE),
        ("cause", StringType()), (POSITION, POSITION_TYPE), ("number", LongType()),
    ]  # fmt: skip
    rows = [
        ((key,), A, (batch, position(line)), position(1), "subscription", position(line or 0), number)
        for number, (key, (batch, line)) in enumerate(answers)
    ]
    given = spark.createDataFrame(rows, StructType([StructField(*field) for field in fields]))
    found = (
        resolve_responses(given, highwater(messages(spark, *sent)), "highwater").orderBy("number").collect()
    )
    return [row["resolution"] for row in found]


@pytest.mark.bad_input(21)
@pytest.mark.bad_input(50)
def test_old_answer_is_not_valid_again_when_the_old_value_is_back(spark: SparkSession) -> None:
    """A, B, A: by its hash the answer to the first A would count; "the offset of the original update" is older."""
    sent: list[tuple[str, Place]] = [("k", (UNDER_WAY, line)) for line in (1, 2, 3)]

    assert resolutions(spark, sent, sent) == ["stale", "stale", "applied"]


def test_race_of_the_draft_ends_with_the_newer_update(spark: SparkSession) -> None:
    """The draft: "there is no guarantee on the order in which the messages arrive".

    "We first must send a delete on the previous CombinedKey, and send the new value on the new CombinedKey": if the
    delete's null arrives last, the null of the older update is dropped all the same.
    """
    new, old = ("k", (UNDER_WAY, 2)), ("k", (UNDER_WAY, 1))

    assert resolutions(spark, [new, old], [old, new]) == ["applied", "stale"]
    assert resolutions(spark, [old], [old, new]) == ["stale"]


def test_mark_is_the_batch_before_the_position(spark: SparkSession) -> None:
    """A day that arrives later stands before another in the order of positions, and its record was accepted after."""
    sent: list[tuple[str, Place]] = [
        ("late day", (1, 9)), ("late day", (2, 4)),
        ("now", (7, 9)), ("now", (UNDER_WAY, 4)),
        ("join", (1, None)), ("join", (2, None)),
    ]  # fmt: skip

    assert resolutions(spark, sent, sent) == ["stale", "applied"] * 3


def test_each_key_has_its_own_mark_and_an_unknown_one_has_none(spark: SparkSession) -> None:
    """An answer to a key that no message is known of is not older than anything."""
    answers: list[tuple[str, Place]] = [("j", (1, 1)), ("k", (1, 1)), ("unknown", (1, 1))]

    assert resolutions(spark, answers, [("j", (1, 1)), ("k", (1, 2))]) == ["applied", "stale", "applied"]


def test_mark_goes_out_with_the_message_and_comes_back_with_the_answer(spark: SparkSession) -> None:
    """The offset "for an event keyed on KR in the original source topic", in the draft's words.

    It lies in the store as well, and is not that of the right row which makes the store answer.
    """
    rows = [((key,), ("k",), A, "PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE", batch, position(line), 1)
            for key, batch, line in (("f", 3, 8), ("g", UNDER_WAY, 5))]  # fmt: skip
    log = spark.createDataFrame(rows, subscription_schema(_JOIN))
    right = spark.createDataFrame(
        [((key,), A, position(9)) for key in "fg"],
        StructType([StructField("primary_key", _JOIN.foreign_key_type), StructField("hash", HASH_TYPE),
                    StructField("position", POSITION_TYPE)]),
    )  # fmt: skip

    told = answer_subscriptions(log, right).unionByName(answer_right_changes(right, live_subscriptions(log)))

    assert {
        (row["cause"], row["foreign_key"][0], row[MARK], row["right_position"]) for row in told.collect()
    } == {
        ("subscription", "f", (3, position(8)), position(9)),
        ("subscription", "g", (UNDER_WAY, position(5)), position(9)),
        ("right_change", "f", (3, position(8)), position(9)),
    }
    assert MARK in response_schema(_JOIN).names


def test_null_of_a_foreign_key_change_is_halted_and_that_of_a_deletion_is_not(spark: SparkSession) -> None:
    """The draft's other property is an instruction here.

    "This is used to halt the propagation of the "null" value for foreignKey changes, but NOT the propagation of "null"
    values for deletions."
    """
    fields: list[tuple[str, Any]] = [
        ("primary_key", _KEY), ("foreign_key", _JOIN.foreign_key_type), ("hash", HASH_TYPE),
        (POSITION, POSITION_TYPE), ("previous_exists", BooleanType()),
        ("previous_foreign_key", _JOIN.foreign_key_type), ("changes_of_key", LongType()),
        ("last_of_key", BooleanType()),
    ]  # fmt: skip
    changes = spark.createDataFrame(
        [(("moved",), ("g",), A, position(1), True, ("f",), 1, True),
         (("deleted",), None, None, position(2), True, ("f",), 1, True)],
        StructType([StructField(*field) for field in fields]),
    )  # fmt: skip

    sent = send_subscriptions(changes, "inner").where("foreign_key.code = 'f'").collect()

    assert {row["primary_key"]["id"]: row["instruction"] for row in sent} == {
        "moved": "DELETE_KEY_NO_PROPAGATE",
        "deleted": "DELETE_KEY_AND_PROPAGATE",
    }
