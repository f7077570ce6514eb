"""Checks that the columns of a frame can be put into a store without a value becoming another one."""

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql.types import (
    DataType,
    DecimalType,
    FractionalType,
    IntegralType,
    NullType,
    StructType,
    TimestampType,
)

from lakejoin.storage.stores.errors import WrongKey


def check_columns(path: str, rows: DataFrame, wanted: StructType) -> None:
    """Raise `WrongKey` for a column that is missing, or of a type whose values the store's column does not hold.

    A whole number is taken by a column of any numbers. One that is too large is found when the rows are written.
    """
    found: Mapping[str, DataType] = {field.name: field.dataType for field in rows.schema}
    names = ", ".join(wanted.names)
    if missing := sorted(set(wanted.names) - set(found)):
        raise WrongKey(
            f"{path}: expected a frame with the columns {names}, missing: {', '.join(missing)}; add them"
        )
    for field in wanted:
        if not _holds(field.dataType, found[field.name]):
            raise WrongKey(
                f"{path}: expected {field.dataType.simpleString()} in the column {field.name}, found "
                f"{found[field.name].simpleString()}; cast it in the frame; nothing was put"
            )


def check_order(path: str, rows: DataFrame, order: str) -> None:
    """Raise `WrongKey` unless the column that orders the rows is there, and of whole numbers or timestamps."""
    if order not in rows.columns:
        raise WrongKey(
            f"{path}: expected the order to be a column of {', '.join(rows.columns)}, found {order!r}; name one of "
            "them, or None for the order that the frame has; nothing was put"
        )
    kind = rows.schema[order].dataType
    if not isinstance(kind, (IntegralType, TimestampType)):
        raise WrongKey(
            f"{path}: expected whole numbers or timestamps in {order}, which orders the rows, found "
            f"{kind.simpleString()}; cast it in the frame; nothing was put"
        )


def _holds(wanted: DataType, found: DataType) -> bool:
    """Whether each value of a type is a value of another, unless it is too large for it."""
    if isinstance(found, NullType) or wanted.simpleString() == found.simpleString():
        return True
    if isinstance(wanted, DecimalType):
        return isinstance(found, IntegralType) or (
            isinstance(found, DecimalType) and found.scale <= wanted.scale
        )
    if isinstance(wanted, FractionalType):
        return isinstance(found, (IntegralType, FractionalType))
    return isinstance(wanted, IntegralType) and isinstance(found, IntegralType)
