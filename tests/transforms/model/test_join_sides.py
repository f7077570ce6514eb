"""The two sides of a join: which foreign key a left row has, and rows as the steps of the join want them."""

from datetime import date
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakejoin.transforms.model.join_sides import foreign_key, left_changes, live_keys, spread, valued
from lakejoin.transforms.model.schemas import DELETED, HASH, HASH_TYPE, POSITION, POSITION_TYPE
from lakejoin.transforms.model.specs import JoinSpec

pytestmark = pytest.mark.spark

_LEFT = (
    StructType().add("region", "string").add("no", "integer").add("carrier", "string").add("number", "string")
    .add("day", "date")
)  # fmt: skip
_RIGHT = StructType().add("carrier", "string").add("flight no.", "long").add("seats", "integer")
_HASH = (1, 2, 3)
_PLACE = (date(2013, 1, 1), "flights.jsonl", 7)


def join(*expressions: str, right_key: tuple[str, ...] = ("carrier", "flight no.")) -> JoinSpec:
    """A join with a composite left key, and these SQL expressions as its foreign key."""
    return JoinSpec("j", "flights", "planes", _LEFT, ("no", "region"), _RIGHT, right_key, expressions, "left")


def rows(spark: SparkSession, *values: tuple[Any, ...]) -> DataFrame:
    """Left rows of carrier, number, and whether they are deleted: then without values and hash."""
    schema = StructType([*_LEFT]).add(POSITION, POSITION_TYPE).add(HASH, HASH_TYPE).add(DELETED, "boolean")
    return spark.createDataFrame(
        [
            ("EU", no, carrier, number, None, _PLACE, None if deleted else _HASH, deleted)
            for no, (carrier, number, deleted) in enumerate(values)
        ],
        schema,
    )


FOREIGN_KEYS: list[tuple[tuple[str, ...], tuple[str, ...], Any, Any, Any]] = [
    # expressions, right key, carrier and number of the left row, then its foreign key
    (("carrier", "number"), ("carrier", "flight no."), "AA", "007", ("AA", 7)),
    (("carrier", "number"), ("carrier", "flight no."), None, "7", None),
    (("carrier", "number"), ("carrier", "flight no."), "AA", None, None),
    (("carrier", "number"), ("carrier", "flight no."), None, None, None),
    (("carrier", "number"), ("carrier", "flight no."), "", "0", ("", 0)),
    (("carrier",), ("carrier",), "AA", None, ("AA",)),
    (("carrier",), ("carrier",), None, "7", None),
    (("carrier",), ("carrier",), "", None, ("",)),
    (("upper(trim(carrier))",), ("carrier",), " aa ", None, ("AA",)),
    (("nullif(carrier, '')",), ("carrier",), "", None, None),
    (("coalesce(carrier, number)",), ("carrier",), None, "7", ("7",)),
    (("cast(number as int) + 1",), ("flight no.",), None, "2147483646", (2147483647,)),
    (("'AA'", "no"), ("carrier", "flight no."), None, None, ("AA", 12)),
]


@pytest.mark.bad_input(3)
def test_foreign_key_is_what_the_expressions_say_or_null_if_a_part_of_it_is(spark: SparkSession) -> None:
    """Columns or expressions, single or composite, with the names and types of the right key; '' is a value."""
    frame = rows(spark, *[(carrier, number, False) for *_, carrier, number, _ in FOREIGN_KEYS])
    specs = [join(*expressions, right_key=key) for expressions, key, *_ in FOREIGN_KEYS]
    keys = frame.select("no", *[foreign_key(spec).alias(f"k{no}") for no, spec in enumerate(specs)])

    found = {row["no"]: row for row in keys.collect()}

    for no, (spec, case) in enumerate(zip(specs, FOREIGN_KEYS, strict=True)):
        assert found[no][f"k{no}"] == case[-1], case
        assert keys.schema[f"k{no}"].dataType.simpleString() == spec.foreign_key_type.simpleString()


def test_foreign_key_that_cannot_be_computed_is_null(spark: SparkSession) -> None:
    """Of that row alone: a row of before the expression must not end every batch that looks at it."""
    spec = join("cast(number as bigint)", right_key=("flight no.",))
    frame = rows(spark, ("AA", "7", False), ("AA", "N/A", False))

    found = {row["no"]: row["key"] for row in frame.select("no", foreign_key(spec).alias("key")).collect()}

    assert found == {0: (7,), 1: None}


def test_change_of_a_left_row_has_its_key_in_the_order_of_the_key(spark: SparkSession) -> None:
    """A deletion has neither foreign key nor hash, also where the expression would give one."""
    changed = left_changes(rows(spark, ("AA", "1", False), (None, None, True)), join("'AA'", "1"))

    assert changed.columns == ["primary_key", POSITION, "foreign_key", "hash"]
    assert sorted(map(tuple, changed.collect())) == [
        (Row(no=0, region="EU"), Row(*_PLACE), Row("AA", 1), Row(*_HASH)),
        (Row(no=1, region="EU"), Row(*_PLACE), None, None),
    ]


def test_deleted_left_rows_have_no_live_keys(spark: SparkSession) -> None:
    """A row without a foreign key is there nevertheless."""
    frame = rows(spark, ("AA", "1", False), ("AA", None, False), ("AA", "1", True))

    found = live_keys(frame, join("carrier", "number")).collect()

    assert {row["primary_key"]["no"]: row["foreign_key"] for row in found} == {0: ("AA", 1), 1: None}


def test_row_of_a_side_is_its_key_hash_position_and_value(spark: SparkSession) -> None:
    """The value holds the declared columns, the key's among them, in declared order."""
    (row,) = valued(rows(spark, ("AA", "1", False)), ("no", "region"), _LEFT).collect()

    assert row.asDict(recursive=True) == {
        "primary_key": {"no": 0, "region": "EU"},
        "hash": dict(zip(HASH_TYPE.names, _HASH, strict=True)),
        "position": dict(zip(POSITION_TYPE.names, _PLACE, strict=True)),
        "value": {"region": "EU", "no": 0, "carrier": "AA", "number": "1", "day": None},
    }


def test_keys_are_spread_over_columns_of_a_table_s_own_names(spark: SparkSession) -> None:
    """Each once, none for null: what a lookup wants."""
    key = F.when(F.col("id") > 0, F.struct((F.col("id") % 2).alias("a"), F.lit("x").alias("b")))
    keys = spark.range(5).select(key.alias("foreign_key"))

    found = spread(keys, "foreign_key", ("flight no.", "carrier"))

    assert found.columns == ["flight no.", "carrier"]
    assert sorted(map(tuple, found.collect())) == [(0, "x"), (1, "x")]


def test_expression_reads_the_column_and_not_what_is_named_like_it(spark: SparkSession) -> None:
    """Steps name their columns `primary_key`, `hash` and the like, and a left row may have columns of these names."""
    left = StructType().add("id", "integer").add("primary_key", "string")
    spec = JoinSpec("j", "a", "b", left, ("id",), _RIGHT, ("carrier",), ("upper(trim(primary_key))",), "left")
    schema = StructType([*left]).add(POSITION, POSITION_TYPE).add(HASH, HASH_TYPE).add(DELETED, "boolean")
    row = spark.createDataFrame([(1, " aa ", _PLACE, _HASH, False)], schema)

    (found,) = left_changes(row, spec).collect()

    assert found["foreign_key"] == Row(carrier="AA")
