"""Rows of a store are written as Spark writes them, in every type that a column may have."""

import json
import math
import random
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructType

from lakejoin.orchestration.config.schema.column_types import NAMES
from lakejoin.orchestration.show import row_texts
from lakejoin.orchestration.show.text_formats import Format, header, lines

SCHEMA = (
    '`a,"b` BIGINT, name STRING, price DECIMAL(12,2), tiny DECIMAL(38,18), at TIMESTAMP, '
    "there TIMESTAMP_NTZ, day DATE, ratio DOUBLE, half FLOAT, yes BOOLEAN, "
    "raw BINARY, tags ARRAY<DECIMAL(4,1)>, sizes MAP<STRING, DOUBLE>, "
    "place STRUCT<x: INT, `y z`: STRING>, one STRUCT<id: INT>, two STRUCT<x: STRING, y: DATE>, "
    "hash STRUCT<spec: SMALLINT, high: BIGINT, low: BIGINT>, "
    "position STRUCT<date: DATE, file: STRING, line: BIGINT>, least TINYINT, "
    "within ARRAY<STRUCT<at: TIMESTAMP, raw: BINARY, half: FLOAT, days: MAP<STRING, ARRAY<DATE>>>>, "
    "calendar MAP<DATE, TIMESTAMP_NTZ>"
)
KEYS = ("one", "two")
ROWS: list[tuple[Any, ...]] = [
    (
        2**40, 'line one\r\nsays "two", \\ three\x00\x1f\x7f\u2028 東京', Decimal("1234567.80"),
        Decimal("0.000000000000000001"), datetime(2013, 1, 1, 10, 15, 0, 1, tzinfo=UTC),
        datetime(999, 1, 1, 10, 15),  # noqa: DTZ001 - of a type without zone
        date(2013, 1, 2), 0.1, 0.1, True, bytearray(b"\x00\xff"),
        [Decimal("1.5"), None], {"a": 1.0, "b": None}, (7, "seven"), (5,), ('a,"b', date(2013, 1, 2)),
        (1, 255, -1), (date(2013, 1, 1), "f.jsonl", 12), -128,
        [(datetime(2013, 1, 1, tzinfo=UTC), b"\xfe", 1e-9, {"x": [date(2013, 1, 2), None]}), None],
        {date(2013, 1, 2): datetime(2013, 1, 2, 3)},  # noqa: DTZ001 - of a type without zone
    ),
    (
        -1, r"\N", Decimal("0.00"), Decimal(0), datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59),  # noqa: DTZ001 - of a type without zone

        date(1, 1, 1), float("nan"), float("inf"), False, bytearray(), [], {}, (None, None), (None,), (None, None),
        (1, None, 2), (None, None, 3), 0, [(None, None, float("-inf"), {"": None})], {date(1, 1, 1): None},
    ),
    (0, "", *[None] * 19),
]  # fmt: skip


def test_every_type_of_a_column_is_among_those_shown() -> None:
    """What can be declared is compared below, on its own or within another type."""
    kinds = re.findall(r"\w+(?=[ ,<>(]|$)", SCHEMA.lower())
    declarable = {re.match(r"\w+", name)[0] for name in NAMES}  # type: ignore[index] # each begins with a word
    assert declarable <= set(kinds)


@pytest.mark.spark
@pytest.mark.parametrize("keys", [KEYS, ()], ids=["log", "declared"])
@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_rows_read_like_those_of_spark(spark: SparkSession, form: Format, keys: tuple[str, ...]) -> None:
    """Character by character: special characters, nulls on each level, keys as structs, structs like positions."""
    rows = spark.createDataFrame(ROWS, SCHEMA).coalesce(1)
    found = rows.toArrow().to_pylist()
    if form == "csv":
        texts = [row_texts.csv_line(row_texts.texts(row, rows.schema, keys)) for row in found]
        ours = [header(rows.columns), *texts]
    else:
        ours = [row_texts.json_line(row, rows.schema, keys) for row in found]
    assert ours == list(lines(rows, form, keys))
    assert any("f.jsonl:12" in line for line in ours) == bool(keys)


@pytest.mark.spark
def test_floating_point_numbers_read_like_those_of_spark(spark: SparkSession) -> None:
    """Powers of ten, edges of Java's two notations, and random bits, in both widths.

    Before 19, Java wrote some numbers with more digits than it takes to tell them apart: those are the same numbers.
    """
    chance = random.Random(5)
    factors = product((1, -1), range(-12, 14), (1, 1.5, 9.999))
    values = [sign * 10.0**power * factor for sign, power, factor in factors]
    values += [0.0, -0.0, 1e-3, 9.999e-4, 9999999.0, 1e7, 123456.789, 1 / 3, math.pi]
    values += [chance.uniform(-1, 1) * 10 ** chance.randrange(-30, 30) for _ in range(200)]
    rows = spark.createDataFrame([(value, value) for value in values], "d DOUBLE, f FLOAT").coalesce(1)
    found = rows.toArrow().to_pylist()
    differing = 0
    for row, theirs in zip(found, lines(rows, "jsonl"), strict=True):
        ours = row_texts.json_line(row, rows.schema, ())
        if ours != theirs:
            differing += 1
            assert len(ours) < len(theirs)
            assert ours.count("E") == theirs.count("E")
            assert _as_floats(ours) == _as_floats(theirs)
    assert differing < len(values) / 4


def _as_floats(line: str) -> tuple[float, np.float32]:
    """The two numbers of a line, each in its width."""
    found = json.loads(line)
    return found["d"], np.float32(found["f"])


def test_null_the_empty_text_and_its_sign_differ() -> None:
    r"""In csv null is `\N` bare, the same text is quoted, and so is the empty one."""
    schema = StructType([*[field for name in "abc" for field in StructType().add(name, StringType())]])
    row = {"a": None, "b": r"\N", "c": ""}
    assert row_texts.csv_line(row_texts.texts(row, schema, ())) == '\\N,"\\N",""\r\n'
