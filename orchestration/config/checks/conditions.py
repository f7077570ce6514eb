"""Checks the conditions (`where`) of tables, streams and joins."""

from pyspark.sql.types import BooleanType

from lakejoin.orchestration.config.checked_document import Reading
from lakejoin.orchestration.config.checks.tables import columns_of
from lakejoin.orchestration.config.problems import KeyPath
from lakejoin.orchestration.config.schema.column_types import type_text
from lakejoin.orchestration.config.schema.expression_types import Columns
from lakejoin.orchestration.config.schema.expressions import type_by_rule


def check_conditions(reading: Reading) -> None:
    """Note what is wrong with the condition of each table and stream."""
    for kind in ("tables", "streams"):
        for name in reading.names(kind):
            check_condition(reading, (kind, name, "where"), columns_of(reading, name, kind), "the row")


def check_condition(reading: Reading, path: KeyPath, columns: Columns | None, over: str) -> None:
    """Note what is wrong with the condition at a path. `columns`: those it may read; `over`: what has them."""
    text = reading.value(*path)
    if columns is None or text is None:
        return
    try:
        dtype = type_by_rule(text, columns, f"a condition is a deterministic scalar expression over {over}")
    except ValueError as error:
        reading.refuse(path, str(error))
        return
    if dtype is not None and dtype != BooleanType():
        reading.refuse(path, f"{text!r} is {type_text(dtype)}; expected a condition, which is true or false")
