"""What a real Debezium recorded from MariaDB in two settings, beside MariaDB's own answers, cell by cell."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from recordings.reading import Special, steps_told
from recordings.test_postgres import little_endian, micros_of, place

pytestmark = pytest.mark.spark

FORMS: Special = {
    "clock": micros_of("clock"), "clock6": micros_of("clock6"), "bits": little_endian("bits", 2), "place": place,
}  # fmt: skip
_BIG = {-1: 18446744073709551615, -9223372036854775808: 9223372036854775808}
"""What `bigint.unsigned.handling.mode: long`, the default, makes of numbers beyond a `bigint`."""
_ZEROS = {"moment": "0000-00-00 00:00:00", "moment6": "0000-00-00 00:00:00.000000", "instant": "0000-00-00 00:00:00",
          "day": "0000-00-00"}  # fmt: skip
_NOT_NULL = {
    "moment_not_null": ("1970-01-01 00:00:00", "0000-00-00 00:00:00"),
    "day_not_null": ("1970-01-01", "0000-00-00"),
}
_PART = {"moment": "2024-06-00 00:00:00", "moment6": "2024-06-00 00:00:00.000000", "day": "2024-00-00"}


def of_debezium(setting: str, step: int) -> list[str]:
    """What Debezium itself makes something else of: unsigned numbers, and dates that are none."""
    kinds = {3: -1, 4: -9223372036854775808, **({13: -1, 14: -9223372036854775808} if step > 1 else {})}
    if setting != "default":  # elsewhere it is `precise`
        kinds = {}
    zeros = (1, 11) if step > 1 else (1,)
    edges = [
        *((key, column, None, text) for key in zeros for column, text in _ZEROS.items()),
        *((key, column, *texts) for key in zeros for column, texts in _NOT_NULL.items()),
        *((2, column, None, text) for column, text in _PART.items()),
    ]
    return sorted(
        [
            *(
                f"kinds_with_customers ({key},) big_u: '{number}', the database '{_BIG[number]}'"
                for key, number in kinds.items()
            ),
            *(
                f"edges_with_customers ({key},) {column}: {own!r}, the database {text!r}"
                for key, column, own, text in edges
            ),
        ]
    )


@pytest.mark.slow
@pytest.mark.parametrize(("setting", "batches"), [("default", [[1], [2], [3]]), ("unwrapped", [[1, 2, 3]])])
def test_joined_tables_equal_those_of_the_database(
    tmp_path: Path, spark: SparkSession, setting: str, batches: list[list[int]]
) -> None:
    """In every cell, but for what Debezium itself does not say: that is listed."""
    for step, told in steps_told("mariadb", setting, tmp_path, spark, batches, FORMS):
        assert told == of_debezium(setting, step)
