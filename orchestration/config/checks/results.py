"""Checks what a join selects for its result, and the condition that its rows meet."""

from collections.abc import Sequence

from lakejoin.orchestration.config.checked_document import Reading
from lakejoin.orchestration.config.checks.conditions import check_condition
from lakejoin.orchestration.config.checks.join_columns import pair_key, pair_of
from lakejoin.orchestration.config.problems import KeyPath, listed
from lakejoin.orchestration.config.schema.expression_types import Columns
from lakejoin.orchestration.config.schema.select import (
    Chosen,
    Entry,
    chosen,
    missing_key,
    twice,
    type_of_value,
)


def check_result(reading: Reading, join: str) -> None:
    """What is selected, and the condition."""
    pair, select = pair_of(reading, join), reading.value("joins", join, "select")
    if pair is None:
        return
    if select is not None:
        _check_select(reading, join, select, pair)
    check_condition(reading, ("joins", join, "where"), pair, "the two rows")


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
