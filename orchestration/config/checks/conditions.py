"""Checks the conditions (`where`) of tables and streams."""

from pyspark.sql.types import BooleanType

from orchestration.config.checked_document import Reading
from orchestration.config.checks.tables import columns_of
from orchestration.config.schema.column_types import type_text
from orchestration.config.schema.expressions import RULE, expression_type

_CONDITION = "a condition is a deterministic scalar expression over the row"


def check_conditions(reading: Reading) -> None:
    """Note what is wrong with the condition of each table and stream."""
    for kind in ("tables", "streams"):
        for name in reading.names(kind):
            _check_where(reading, name, kind)


def _check_where(reading: Reading, name: str, kind: str) -> None:
    path = (kind, name, "where")
    columns, text = columns_of(reading, name, kind), reading.value(*path)
    if columns is None or text is None:
        return
    try:
        dtype = expression_type(text, columns)
    except ValueError as error:
        reading.refuse(path, f"{text!r} {error}".replace(RULE, _CONDITION))
        return
    if dtype is not None and dtype != BooleanType():
        reading.refuse(path, f"{text!r} is {type_text(dtype)}; expected a condition, which is true or false")
