"""Checks what a join selects for its result, and the condition that its rows meet."""

from collections.abc import Sequence

from pyspark.sql.types import BooleanType

from orchestration.config.checked_document import Reading
from orchestration.config.checks.join_columns import pair_key, pair_of
from orchestration.config.problems import KeyPath, listed
from orchestration.config.schema.column_types import type_text
from orchestration.config.schema.expression_types import Columns
from orchestration.config.schema.select import (
    Chosen,
    Entry,
    chosen,
    missing_key,
    twice,
    type_of_condition,
    type_of_value,
)


def check_result(reading: Reading, join: str) -> None:
    """What is selected, and the condition."""
    pair, select = pair_of(reading, join), reading.value("joins", join, "select")
    if pair is None:
        return
    if select is not None:
        _check_select(reading, join, select, pair)
    if (condition := reading.value("joins", join, "where")) is not None:
        path = ("joins", join, "where")
        try:
            dtype = type_of_condition(condition, pair)
        except ValueError as error:
            reading.refuse(path, str(error))
            return
        if dtype is not None and dtype != BooleanType():
            reading.refuse(
                path, f"{condition!r} is {type_text(dtype)}; expected a condition, which is true or false"
            )


def _check_select(reading: Reading, join: str, select: Sequence[Entry], pair: Columns) -> None:
    path: KeyPath = ("joins", join, "select")
    result: list[Chosen] = []
    for index, entry in enumerate(select):
        try:
            columns = chosen([entry], pair)
            for column in columns:
                type_of_value(column.text, pair)
        except ValueError as error:
            reading.refuse((*path, index), str(error))
            return
        result += columns
        if both := twice([column.name for column in result]):
            reading.refuse((*path, index), f"makes a second column {listed(both)}; give it another name")
            return
    key = pair_key(reading, join)
    if key is not None and (message := missing_key(result, key)):
        reading.refuse(path, message)
