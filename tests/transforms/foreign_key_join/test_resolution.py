"""Which answers count, what the join emits for them, and which emissions leave the joined table as it was."""

from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from lakejoin.transforms.foreign_key_join.emissions import (
    REDUNDANT,
    TOMBSTONE,
    emit_results,
    redundant,
    with_joined_hash,
)
from lakejoin.transforms.foreign_key_join.resolution import resolve_responses
from lakejoin.transforms.foreign_key_join.responses import response_schema
from lakejoin.transforms.model.hashing import value_hash
from lakejoin.transforms.model.schemas import (
    BATCH,
    HASH,
    HASH_TYPE,
    LEFT_HASH,
    POSITION,
    POSITION_TYPE,
    PRIMARY_KEY,
    RIGHT_HASH,
    named,
)
from lakejoin.transforms.model.specs import How, JoinSpec

pytestmark = pytest.mark.spark

_LEFT = StructType().add("region", "string").add("no", "integer").add("fk", "string").add("v", "string")
_RIGHT = StructType().add("code", "string").add("name", "string")

Hash = tuple[int, int, int]
OLD, NEW, RIGHT = (1, 1, 1), (1, 2, 2), (1, 3, 3)
LEFT_LINE = 7
"""Where the left rows stand."""


def spec(how: How) -> JoinSpec:
    """A join whose left key is composite."""
    return JoinSpec(
        "enriched", "orders", "customers", _LEFT, ("region", "no"), _RIGHT, ("code",), ("fk",), how, "to_"
    )


def place(line: int | None) -> tuple[None, str, int] | None:
    """A position of a record in some file."""
    return None if line is None else (None, "rows.jsonl", line)


def responses(spark: SparkSession, *answers: tuple[Any, ...]) -> DataFrame:
    """Answers by number of the left key, foreign key, hash, right hash, line of the right row, cause and line."""
    fields = [f for f in response_schema(spec("left")) if f.name not in ("resolution", BATCH)]
    rows = [
        (("EU", no), key and (key,), hashed, right_hash, place(right_line), cause, place(line))
        for no, key, hashed, right_hash, right_line, cause, line in answers
    ]
    return spark.createDataFrame(rows, StructType(fields))


def left_rows(spark: SparkSession, *rows: tuple[int, Hash | None, str | None, str | None]) -> DataFrame:
    """Left rows by number, hash (None for a deleted one), foreign key and value; all stand at `LEFT_LINE`."""
    schema = StructType([
        StructField("primary_key", spec("left").primary_key_type), StructField("hash", HASH_TYPE),
        StructField("position", POSITION_TYPE), StructField("value", _LEFT),
    ])  # fmt: skip
    return spark.createDataFrame(
        [(("EU", no), hashed, place(LEFT_LINE), ("EU", no, key, v)) for no, hashed, key, v in rows], schema
    )


def right_rows(spark: SparkSession, *rows: tuple[str, Hash | None, str | None]) -> DataFrame:
    """Right rows by key, hash (None for a deleted one) and name."""
    schema = StructType([
        StructField("primary_key", spec("left").foreign_key_type), StructField("hash", HASH_TYPE),
        StructField("value", _RIGHT),
    ])  # fmt: skip
    return spark.createDataFrame([((code,), hashed, (code, name)) for code, hashed, name in rows], schema)


BY_SUBSCRIPTION, BY_RIGHT_CHANGE = "subscription", "right_change"
ANSWERS: list[tuple[str, Hash | None, list[tuple[Any, ...]]]] = [
    # the left row's hash after the batch, then its answers: hash, right line, cause, line, and what becomes of it
    ("to the value that stands", NEW, [(NEW, 1, BY_SUBSCRIPTION, 1, "applied")]),
    ("to a value that has changed since", NEW, [(OLD, 1, BY_SUBSCRIPTION, 1, "stale")]),
    ("to a row that was deleted since", None, [(OLD, 1, BY_RIGHT_CHANGE, 1, "stale")]),
    ("to the change that the row is from", NEW, [(NEW, 1, BY_SUBSCRIPTION, LEFT_LINE, "applied")]),
    (
        "to another value of the change that the row is from",
        NEW,
        [
            (OLD, 1, BY_SUBSCRIPTION, LEFT_LINE, "contradictory"),
            (OLD, 1, BY_RIGHT_CHANGE, LEFT_LINE, "stale"),
        ],
    ),
    ("to a deletion", None, [(None, None, BY_SUBSCRIPTION, 1, "applied")]),
    ("to a deletion, but the row is back", NEW, [(None, None, BY_SUBSCRIPTION, 1, "stale")]),
    (
        "stale ones do not stand in the way of the one that counts",
        NEW,
        [(OLD, 9, BY_RIGHT_CHANGE, 9, "stale"), (NEW, 1, BY_SUBSCRIPTION, 2, "applied")],
    ),
    (
        "the newest right value wins",
        NEW,
        [(NEW, 3, BY_SUBSCRIPTION, 9, "superseded"), (NEW, 4, BY_RIGHT_CHANGE, 4, "applied")],
    ),
    (
        "any right value wins over none",
        NEW,
        [(NEW, None, BY_SUBSCRIPTION, 9, "superseded"), (NEW, 1, BY_SUBSCRIPTION, 2, "applied")],
    ),
    (
        "of the same right value the later answer",
        NEW,
        [(NEW, 3, BY_SUBSCRIPTION, 2, "superseded"), (NEW, 3, BY_SUBSCRIPTION, 5, "applied")],
    ),
    (
        "at the same place a right change",
        NEW,
        [(NEW, 3, BY_SUBSCRIPTION, 3, "superseded"), (NEW, 3, BY_RIGHT_CHANGE, 3, "applied")],
    ),
]


@pytest.mark.guard("hash_check")
@pytest.mark.bad_input(21)
@pytest.mark.bad_input(50)
def test_answer_counts_if_its_hash_is_that_of_the_left_row(spark: SparkSession) -> None:
    """One of them for each key: the others are stale, superseded or contradictory, and each says which."""
    given = [
        (no, "f", hashed, RIGHT, right_line, cause, line)
        for no, (_, _, answers) in enumerate(ANSWERS)
        for hashed, right_line, cause, line, _ in answers
    ]
    left = left_rows(spark, *[(no, hashed, "f", "v") for no, (_, hashed, _) in enumerate(ANSWERS)])

    rows = resolve_responses(responses(spark, *given), left).collect()

    for no, (name, _, answers) in enumerate(ANSWERS):
        found = {
            (row["hash"], row["right_position"] and row["right_position"]["line"], row["cause"], row[POSITION]["line"],
             row["resolution"])
            for row in rows if row["primary_key"]["no"] == no
        }  # fmt: skip
        assert found == set(answers), name


def test_left_row_that_is_not_there_counts_as_deleted(spark: SparkSession) -> None:
    """Its answers are stale, except one to the deletion itself; the columns of the log stay as they are."""
    given = responses(
        spark, (1, "f", OLD, RIGHT, 1, BY_RIGHT_CHANGE, 1), (2, None, None, None, None, BY_SUBSCRIPTION, 2)
    )

    resolved = resolve_responses(given, left_rows(spark))

    assert resolved.columns == [*given.columns, "resolution"]
    assert {row["primary_key"]["no"]: row["resolution"] for row in resolved.collect()} == {
        1: "stale",
        2: "applied",
    }


EMISSIONS: list[tuple[str, Hash | None, Any, str | None, Hash | None, str, str]] = [
    # left hash, its foreign key, that of the answer, right hash, then what is emitted by inner and by left
    ("both rows are there", NEW, "f", "f", RIGHT, "joined", "joined"),
    ("no right row", NEW, "none", "none", None, "tombstone", "left only"),
    ("a right row that was deleted", NEW, "gone", "gone", None, "tombstone", "left only"),
    ("no foreign key", NEW, None, None, None, "tombstone", "left only"),
    ("retracted from the old foreign key", NEW, None, "f", None, "tombstone", "left only"),
    ("the left row is gone", None, None, "f", None, "tombstone", "tombstone"),
    ("the left row is gone, not the right one", None, None, "f", RIGHT, "tombstone", "tombstone"),
]


@pytest.mark.bad_input(24)
@pytest.mark.parametrize("how", ["inner", "left"])
def test_applied_answer_emits_the_joined_row_or_a_tombstone(spark: SparkSession, how: How) -> None:
    """Inner: a tombstone without right value; left: the left row alone. Without left row a tombstone in both."""
    join = spec(how)
    left = left_rows(spark, *[(no, case[1], case[2], "v") for no, case in enumerate(EMISSIONS)])
    right = right_rows(spark, ("f", RIGHT, "F"), ("gone", None, None))
    given = responses(
        spark,
        *[(no, case[3], case[1], case[4], 1, BY_SUBSCRIPTION, 1) for no, case in enumerate(EMISSIONS)],
    ).withColumn("resolution", F.lit("applied"))

    rows = emit_results(given, left, right, join).collect()

    found = {row["no"]: row for row in rows}
    assert len(rows) == len(EMISSIONS)
    for no, (name, _, key, _, _, *expected) in enumerate(EMISSIONS):
        row = found[no]
        assert (row["region"], row[PRIMARY_KEY]) == ("EU", ("EU", no)), name
        values = tuple(row[column] for column in ("fk", "v", "to_code", "to_name"))
        match expected[0] if how == "inner" else expected[1]:
            case "joined":
                assert (row[TOMBSTONE], values) == (False, (key, "v", "f", "F")), name
                assert (row[LEFT_HASH], row[RIGHT_HASH]) == (NEW, RIGHT), name
            case "left only":
                assert (row[TOMBSTONE], values) == (False, (key, "v", None, None)), name
                assert (row[LEFT_HASH], row[RIGHT_HASH]) == (NEW, None), name
            case _:
                assert (row[TOMBSTONE], values) == (True, (None,) * 4), name
                assert (row[LEFT_HASH], row[RIGHT_HASH]) == (None, None), name


def test_emissions_are_rows_of_the_joined_table_with_its_hash(spark: SparkSession) -> None:
    """Left columns, right ones with the prefix, and the hash of them all; only applied answers emit."""
    join = spec("left")
    given = responses(
        spark, (1, "f", NEW, RIGHT, 1, BY_SUBSCRIPTION, 1), (2, "f", NEW, RIGHT, 1, BY_SUBSCRIPTION, 1),
        (3, "f", OLD, RIGHT, 1, BY_SUBSCRIPTION, 1),
    ).withColumn(
        "resolution",
        F.element_at(F.array(F.lit("applied"), F.lit("superseded"), F.lit("stale")), F.col("primary_key.no")),
    )  # fmt: skip
    left = left_rows(spark, *[(no, NEW, "f", "v") for no in (1, 2, 3)])

    emitted = emit_results(given, left, right_rows(spark, ("f", RIGHT, "F")), join)

    columns = emitted.select(*[named(name) for name in join.columns.names])
    assert columns.schema == join.columns
    assert columns.collect() == [Row(region="EU", no=1, fk="f", v="v", to_code="f", to_name="F")]
    hashed = with_joined_hash(emitted, join.columns).select(HASH).collect()
    assert hashed == columns.select(value_hash(join.columns)).collect()
    gone = emitted.withColumn(TOMBSTONE, F.lit(True))
    assert with_joined_hash(gone, join.columns).select(HASH).collect() == [Row(None)]


def hashed(spark: SparkSession, *rows: tuple[int, Hash | None, Hash | None], emitted: bool) -> DataFrame:
    """Keys by number, each with its left and right hash, as emissions have them or else joined rows."""
    names = (PRIMARY_KEY if emitted else "primary_key", LEFT_HASH, RIGHT_HASH)
    types = (StructType([StructField("id", StringType())]), HASH_TYPE, HASH_TYPE)
    schema = StructType([StructField(name, dtype) for name, dtype in zip(names, types, strict=True)])
    return spark.createDataFrame([((str(no),), left, right) for no, left, right in rows], schema)


def test_emission_is_redundant_where_the_joined_table_is_that_way_already(spark: SparkSession) -> None:
    """The same two rows again, or a tombstone for a key without row; anything else changes something."""
    emissions = hashed(
        spark, (1, NEW, RIGHT), (2, NEW, RIGHT), (3, NEW, RIGHT), (4, None, None), (5, None, None), (6, NEW, None),
        (7, NEW, RIGHT), (8, NEW, None), (9, NEW, None), emitted=True,
    )  # fmt: skip
    before = hashed(
        spark, (1, NEW, RIGHT), (2, OLD, RIGHT), (4, OLD, RIGHT), (6, NEW, None), (7, NEW, OLD), (8, NEW, RIGHT),
        (10, NEW, None), emitted=False,
    )  # fmt: skip

    marked = redundant(emissions, before, spec("left"))

    assert marked.columns == [PRIMARY_KEY, LEFT_HASH, RIGHT_HASH, REDUNDANT]
    assert {row[PRIMARY_KEY]["id"]: row[REDUNDANT] for row in marked.collect()} == {
        "1": True,  # the same row
        "2": False,  # another left row
        "3": False,  # the first row
        "4": False,  # the end of one
        "5": True,  # there was none
        "6": True,  # the same left row, still without a right one
        "7": False,  # another right row
        "8": False,  # no right row any more
        "9": False,  # the first row, without a right one
    }
