"""A result keyed by foreign key and primary key: which pair an applied answer ends, and which one it begins."""

from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from lakejoin.transforms.foreign_key_join.emissions import TOMBSTONE, emit_results
from lakejoin.transforms.model.schemas import HASH_TYPE, LEFT_HASH, PRIMARY_KEY, RIGHT_HASH
from lakejoin.transforms.model.specs import JoinSpec

pytestmark = pytest.mark.spark

_LEFT = StructType().add("id", "string").add("fk", "string").add("v", "string")
_RIGHT = StructType().add("code", "string").add("name", "string")
JOIN = JoinSpec(
    "pairs", "bs", "as", _LEFT, ("id",), _RIGHT, ("code",), ("fk",), "inner", "a_", result_key="combined"
)
HASHED = (1, 2, 3)
SUBSCRIPTION, RIGHT_CHANGE = "subscription", "right_change"

CASES: list[tuple[str, str | None, str | None, tuple[str | None, str | None, str], list[tuple[str, str]]]] = [
    # the foreign key before the batch and now, the answer's with its right value and cause, then what is emitted
    ("a new row", None, "f", ("f", "F", SUBSCRIPTION), [("+", "f")]),
    ("the same foreign key", "f", "f", ("f", "F", SUBSCRIPTION), [("+", "f")]),
    ("another foreign key", "f", "g", ("g", "G", SUBSCRIPTION), [("-", "f"), ("+", "g")]),
    ("another one that is not there", "f", "g", ("g", None, SUBSCRIPTION), [("-", "f")]),
    ("no foreign key any more", "f", None, ("f", None, SUBSCRIPTION), [("-", "f")]),
    ("none after several changes", "f", None, (None, None, SUBSCRIPTION), [("-", "f")]),
    ("a deleted row", "f", "gone", ("f", None, SUBSCRIPTION), [("-", "f")]),
    ("a row that never had a pair", None, "g", ("g", None, SUBSCRIPTION), []),
    ("the right row changed", None, "f", ("f", "F2", RIGHT_CHANGE), [("+", "f")]),
    ("the right row went", None, "f", ("f", None, RIGHT_CHANGE), [("-", "f")]),
    ("both: moved, and the right row changed", "f", "g", ("g", "G2", RIGHT_CHANGE), [("-", "f"), ("+", "g")]),
    ("both: moved, and the right row went", "f", "g", ("g", None, RIGHT_CHANGE), [("-", "f")]),
]


def test_answer_retracts_the_pair_that_was_and_adds_the_one_that_is(spark: SparkSession) -> None:
    """Jan's steps: "forward(key, null) for old", "forward(key, b) for new", "skip old if A's key didn't change"."""
    key, foreign = StructType([StructField("id", StringType())]), JOIN.foreign_key_type
    names = [str(number) for number in range(len(CASES))]
    resolved = _frame(
        spark,
        {"primary_key": key, "foreign_key": foreign, "right_hash": HASH_TYPE, "cause": "string",
         "resolution": "string"},
        [((n,), f and (f,), value and HASHED, cause, "applied")
         for n, (_, _, _, (f, value, cause), _) in zip(names, CASES, strict=True)],
    )  # fmt: skip
    left = _frame(
        spark, {"primary_key": key, "hash": HASH_TYPE, "value": _LEFT},
        [((n,), None if now == "gone" else HASHED, (n, now, "v"))
         for n, (_, _, now, _, _) in zip(names, CASES, strict=True)],
    )  # fmt: skip
    right = _frame(spark, {"primary_key": foreign, "value": _RIGHT}, [((c,), (c, c.upper())) for c in "fg"])
    before = _frame(
        spark, {"primary_key": key, "foreign_key": foreign},
        [((n,), (was,)) for n, (_, was, _, _, _) in zip(names, CASES, strict=True) if was],
    )  # fmt: skip

    rows = emit_results(resolved, left, right, JOIN, before).collect()

    for number, (name, _, _, _, expected) in zip(names, CASES, strict=True):
        found = [row for row in rows if row["id"] == number]
        assert sorted(("-" if row[TOMBSTONE] else "+", row["a_code"]) for row in found) == sorted(expected), (
            name
        )
        for row in found:
            values = (row["v"], row["a_name"], row[LEFT_HASH], row[RIGHT_HASH])
            whole = all(value is not None for value in values)
            assert whole if not row[TOMBSTONE] else values == (None,) * 4, name
            assert row[PRIMARY_KEY]["id"] == number


def test_key_of_the_result_is_the_right_key_before_the_left_one() -> None:
    """Under the names that they have in the joined table."""
    assert JOIN.joined_key == ("a_code", "id")
    assert JOIN.joined_key_type == StructType().add("a_code", "string").add("id", "string")


def _frame(spark: SparkSession, fields: dict[str, Any], rows: list[Any]) -> Any:
    schema = StructType()
    for name, dtype in fields.items():
        schema = schema.add(name, dtype)
    return spark.createDataFrame(rows, schema)
