"""Versions joined with versions: beside a look at both sides moment by moment."""

import random
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructType

from lakejoin.transforms.foreign_key_join.temporal_join import SPAN, left_versions, temporal_join
from lakejoin.transforms.model.result_spec import History, Selected
from lakejoin.transforms.model.schemas import (
    DELETED,
    HASH,
    POSITION,
    POSITION_TYPE,
    SEQUENCE,
    VALID_FROM,
    VALID_TO,
)
from lakejoin.transforms.model.specs import How, JoinSpec, StarSpec

pytestmark = pytest.mark.spark

START = datetime(2024, 1, 1, tzinfo=UTC)
ORDERS = StructType().add("id", "long").add("customer", "string").add("amount", "long")
CUSTOMERS = StructType().add("name", "string").add("country", "string")
Version = tuple[Any, int, int | None, tuple[Any, ...] | None]
"""Key, since, until, and the other columns; none of a deleted row."""


def join(how: How, **others: Any) -> JoinSpec:
    """Orders with their customers."""
    return JoinSpec(
        name="sold", left="orders", right="customers", left_columns=ORDERS, left_key=("id",), right_columns=CUSTOMERS,
        right_key=("name",), foreign_key=("customer",), how=how, history=History(by_event_time=True), **others,
    )  # fmt: skip


def versions(spark: SparkSession, columns: StructType, rows: Iterable[Version]) -> DataFrame:
    """Versions of a side with their ends."""

    def at(hour: int | None) -> datetime | None:
        return None if hour is None else START + timedelta(hours=hour)

    made = []
    for line, (key, since, until, values) in enumerate(rows, start=1):
        row = dict(zip(columns.names, (key, *(values or ())), strict=False))
        position = {"date": None, "file": "f", "line": line}
        hashed = None if values is None else {"spec": 1, "high": hash((key, values)), "low": 0}
        row |= {POSITION: position, SEQUENCE: {"line": line}, HASH: hashed, DELETED: values is None}
        made.append(row | {VALID_FROM: at(since), VALID_TO: at(until)})
    schema = StructType([*columns])
    schema = schema.add(POSITION, POSITION_TYPE).add(SEQUENCE, StructType().add("line", "long"))
    hashes = StructType().add("spec", "short").add("high", "long").add("low", "long")
    schema = schema.add(HASH, hashes).add(DELETED, "boolean")
    return spark.createDataFrame(made, schema.add(VALID_FROM, "timestamp").add(VALID_TO, "timestamp"))


def pieces(frame: DataFrame) -> list[tuple[Any, ...]]:
    """Rows of the join, with their hours."""

    def hour(field: str) -> Any:
        return (
            (F.unix_micros(F.col(SPAN)[field]) - F.lit(int(START.timestamp() * 1e6))) / 3_600_000_000
        ).cast("int")

    columns = [name for name in frame.columns if name != SPAN and not name.startswith("_lj_")]
    rows = frame.select(*columns, hour(VALID_FROM).alias("since"), hour(VALID_TO).alias("until")).collect()
    return sorted((tuple(row) for row in rows), key=str)


def test_versions_meet_while_both_are_valid(spark: SparkSession) -> None:
    """From the later beginning to the earlier end, which is exclusive; a left join also has what lies between."""
    orders = versions(
        spark, ORDERS,
        [(1, 0, 4, ("a", 10)), (1, 4, 8, ("b", 11)), (1, 8, None, None), (2, 3, None, (None, 12))],
    )  # fmt: skip
    customers = versions(
        spark, CUSTOMERS,
        [("a", 1, 2, ("de",)), ("a", 2, 3, None), ("a", 3, 4, ("fr",)), ("a", 4, None, ("it",)),
         ("b", 8, None, ("es",))],
    )  # fmt: skip

    found = temporal_join(left_versions(orders, join("inner")), [customers], join("inner"))
    assert pieces(found) == [(1, "a", 10, "a", "de", 1, 2), (1, "a", 10, "a", "fr", 3, 4)]

    found = temporal_join(left_versions(orders, join("left")), [customers], join("left"))
    assert pieces(found) == [
        (1, "a", 10, "a", "de", 1, 2), (1, "a", 10, "a", "fr", 3, 4), (1, "a", 10, None, None, 0, 1),
        (1, "a", 10, None, None, 2, 3), (1, "b", 11, None, None, 4, 8), (2, None, 12, None, None, 3, None),
    ]  # fmt: skip


def test_left_versions_that_were_there_first_meet_the_first_right_one(spark: SparkSession) -> None:
    """Also where it begins long after, or not at all before they end."""
    orders = versions(spark, ORDERS, [(1, 0, 3, ("a", 1)), (1, 3, None, ("a", 2)), (2, 0, 1, ("a", 3))])
    customers = versions(spark, CUSTOMERS, [("a", 5, None, ("de",))])
    found = temporal_join(left_versions(orders, join("left")), [customers], join("left"))
    assert pieces(found) == [
        (1, "a", 1, None, None, 0, 3), (1, "a", 2, "a", "de", 5, None), (1, "a", 2, None, None, 3, 5),
        (2, "a", 3, None, None, 0, 1),
    ]  # fmt: skip


def _random_versions(
    chance: random.Random, keys: Iterable[Any], values: Callable[[], tuple[Any, ...]]
) -> list[Version]:
    found: list[Version] = []
    for key in keys:
        begins = sorted(chance.sample(range(12), chance.randrange(6)))
        for since, until in zip(begins, [*begins[1:], None], strict=False):
            found.append((key, since, until, values() if chance.random() < 0.8 else None))
    return found


def _valid(rows: Iterable[Version], key: Any, hour: int) -> tuple[Any, ...] | None:
    for found, since, until, values in rows:
        if found == key and since <= hour and (until is None or hour < until):
            return values
    return None


@pytest.mark.parametrize("seed", range(3))
def test_join_has_at_each_moment_what_its_sides_have(seed: int, spark: SparkSession) -> None:
    """Of a pair, of a combined key, with a condition, and of a star; never two rows at once."""
    chance = random.Random(seed)
    of_orders = _random_versions(
        chance, range(6), lambda: (chance.choice(["a", "b", "c", None]), chance.randrange(3))
    )
    of_customers = _random_versions(chance, "abd", lambda: (chance.choice(["de", "fr"]),))
    orders, customers = versions(spark, ORDERS, of_orders), versions(spark, CUSTOMERS, of_customers)
    selected = tuple(
        Selected(name, dtype, f"`{name}`", name)
        for name, dtype in (
            ("id", LongType()), ("amount", LongType()), ("right_name", StringType()), ("right_country", StringType()),
        )
    )  # fmt: skip
    by_amount = JoinSpec(
        **{
            **vars(join("inner")),
            "side": "b",
            "prefix": "b_",
            "foreign_key": ("substring('abd', amount, 1)",),
        }
    )
    star_parts = (JoinSpec(**{**vars(join("left")), "side": "a", "prefix": "a_"}), by_amount)
    star = StarSpec(
        "star", "orders", ORDERS, ("id",), star_parts, history=History(by_event_time=True),
    )  # fmt: skip
    cases = {
        "inner": join("inner", select=selected), "left": join("left", select=selected),
        "combined": join("inner", select=selected, result_key="combined"),
        "where": join("left", select=selected, where="amount > 0 or right_country = 'de'"), "star": star,
    }  # fmt: skip
    for name, spec in cases.items():
        rights = [customers] * len(spec.parts)
        found = pieces(temporal_join(left_versions(orders, spec), rights, spec))
        for hour in range(13):
            there = [row[:-2] for row in found if row[-2] <= hour and (row[-1] is None or hour < row[-1])]
            assert sorted(there, key=str) == sorted(
                _expected(name, of_orders, of_customers, hour), key=str
            ), (name, hour)


def _expected(name: str, orders: list[Version], customers: list[Version], hour: int) -> list[tuple[Any, ...]]:
    found = []
    for key in sorted({order[0] for order in orders}):
        if (order := _valid(orders, key, hour)) is None:
            continue
        customer, amount = order
        right = _valid(customers, customer, hour)
        shown = (customer, *right) if right else (None, None)
        if name == "star":
            other = "abd"[max(amount - 1, 0) :][:1]
            if (second := _valid(customers, other, hour)) is not None:
                found.append((key, customer, amount, *shown, other, *second))
        elif (right or name in {"left", "where"}) and (name != "where" or amount > 0 or shown[1] == "de"):
            found.append((key, amount, *shown))
    return found


def test_no_pair_is_looked_at_that_is_not_joined(spark: SparkSession) -> None:
    """Every join of the plan is one by equal keys, for versions of a key may be many."""
    orders, customers = versions(spark, ORDERS, []), versions(spark, CUSTOMERS, [])
    found = temporal_join(left_versions(orders, join("left")), [customers], join("left"))
    plan = found._jdf.queryExecution().executedPlan().toString()  # type: ignore[operator]
    assert "NestedLoop" not in plan
    assert "Cartesian" not in plan
