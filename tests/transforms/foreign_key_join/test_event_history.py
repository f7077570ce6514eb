"""A history by event time: what a batch writes of it, and what it leaves alone."""

from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakejoin.transforms.foreign_key_join.event_history import GONE, reaching, revised
from lakejoin.transforms.foreign_key_join.history import history_schema
from lakejoin.transforms.foreign_key_join.temporal_join import SPAN
from lakejoin.transforms.model.hashing import value_hash
from lakejoin.transforms.model.result_spec import History
from lakejoin.transforms.model.schemas import BATCH, HASH, LEFT_SEQUENCE, VALID_FROM, VALID_TO
from lakejoin.transforms.model.specs import JoinSpec

pytestmark = pytest.mark.spark

START = datetime(2024, 1, 1, tzinfo=UTC)
SEQUENCE = StructType().add("n", "long")
JOIN = JoinSpec(
    name="sold", left="orders", right="customers", left_columns=StructType().add("id", "long").add("amount", "long"),
    left_key=("id",), right_columns=StructType().add("name", "string"), right_key=("name",), foreign_key=("customer",),
    how="left", history=History(by_event_time=True), left_sequence=SEQUENCE,
)  # fmt: skip
Spell = tuple[int, int, int | None, int]
"""Amount, since, until, and the sequence of the left row; all of key 1."""


def at(hour: int | None) -> datetime | None:
    """An hour."""
    return None if hour is None else START + timedelta(hours=hour)


def rows(spark: SparkSession, *spells: Spell) -> DataFrame:
    """What a join has from when until when."""
    span = StructType().add(VALID_FROM, "timestamp").add(VALID_TO, "timestamp")
    schema = StructType([*JOIN.columns]).add(LEFT_SEQUENCE, SEQUENCE).add(SPAN, span)
    return spark.createDataFrame(
        [
            (1, amount, None, (number,), (at(since), at(until)))
            for amount, since, until, number in spells
        ],
        schema,
    )  # fmt: skip


def stored(spark: SparkSession, *spells: Spell) -> DataFrame:
    """The same as rows of the history, which batch 1 wrote."""
    found = rows(spark, *spells).select("*", f"{SPAN}.*").withColumns(
        {HASH: value_hash(JOIN.columns), BATCH: F.lit(1).cast("bigint")}
    )  # fmt: skip
    return found.select(*history_schema(JOIN).names)


def changes(made: DataFrame) -> list[tuple[int, int, int | None, int, bool]]:
    """Amount, since, until, sequence, and whether the row goes."""

    def hour(name: str) -> F.Column:  # type: ignore[name-defined]
        return ((F.unix_seconds(name) - F.lit(int(START.timestamp()))) / 3600).cast("int")

    found = made.select("amount", hour(VALID_FROM), hour(VALID_TO), F.col(LEFT_SEQUENCE)["n"], GONE, BATCH)
    assert {row[5] for row in found.collect()} <= {1, 2}
    return sorted((tuple(row)[:5] for row in found.collect()), key=str)


def revise(
    spark: SparkSession, now: tuple[Spell, ...], was: tuple[Spell, ...], since: int | None
) -> list[tuple[int, int, int | None, int, bool]]:
    """What batch 2 changes."""
    known = reaching(stored(spark, *was), at(since))
    return changes(revised(rows(spark, *now), known, JOIN, F.lit(2).cast("bigint"), at(since)))


def test_only_what_differs_is_written(spark: SparkSession) -> None:
    """A row that ends otherwise is written in its place; one that is no longer true goes."""
    was = ((1, 0, 2, 1), (2, 2, 4, 2), (3, 4, None, 3))
    assert revise(spark, was, was, None) == []
    assert revise(spark, ((1, 0, 3, 1), (3, 4, None, 3)), was, None) == [
        (1, 0, 3, 1, False),
        (2, 2, 4, 2, True),
    ]
    assert revise(spark, (), was[:1], None) == [(1, 0, 2, 1, True)]


def test_rows_that_follow_each_other_and_are_the_same_are_one(spark: SparkSession) -> None:
    """With the sequence of the first; but not over a time at which there was none, nor over another row."""
    now = ((1, 0, 2, 1), (1, 2, 4, 2), (1, 5, 6, 3), (2, 6, 7, 4), (1, 7, None, 5))
    assert revise(spark, now, (), None) == [
        (1, 0, 4, 1, False), (1, 5, 6, 3, False), (1, 7, None, 5, False), (2, 6, 7, 4, False),
    ]  # fmt: skip


def test_what_is_settled_stays_and_goes_on(spark: SparkSession) -> None:
    """Whatever the sides still know of that time; a row that reaches beyond it is one with what follows."""
    was = ((1, 0, 2, 1), (2, 2, None, 2))
    assert revise(spark, ((2, 3, None, 9),), was, 3) == []
    assert revise(spark, ((2, 1, 5, 9), (3, 5, None, 4)), was, 3) == [
        (2, 2, 5, 2, False),
        (3, 5, None, 4, False),
    ]
    # at the very time it may be another row, and what ended just then may go on
    assert revise(spark, ((3, 3, None, 9),), was, 3) == [(2, 2, 3, 2, False), (3, 3, None, 9, False)]
    assert revise(spark, ((1, 3, None, 9),), ((1, 0, 3, 1), (2, 3, None, 2)), 3) == [
        (1, 0, None, 1, False), (2, 3, None, 2, True),
    ]  # fmt: skip
    assert revise(spark, (), was, 3) == [(2, 2, 3, 2, False)]
