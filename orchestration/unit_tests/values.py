"""Compares values of a YAML file with values of a result, by the type of their column."""

from base64 import b64decode, b64encode
from collections.abc import Callable, Hashable, Mapping
from datetime import UTC, date, datetime
from decimal import Context, Decimal, InvalidOperation
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    FractionalType,
    IntegralType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from lakejoin.orchestration.config.document import written

_DIGITS = Context(prec=76)
"""More than any decimal of Spark has."""


def comparable(value: Any, dtype: DataType) -> Hashable:
    """Return what equal values of a type have in common, however they are written.

    value: as YAML has it, or as Arrow gives it to Python. Floating numbers are compared by nine digits; a timestamp
    without a zone is in UTC. Raises `ValueError` for a value that the type has not.
    """
    if value is None:
        return None
    match dtype:
        case ArrayType():
            return tuple(comparable(item, dtype.elementType) for item in _list(value))
        case MapType():
            entries = value.items() if isinstance(value, dict) else _list(value)
            return frozenset(
                (comparable(key, dtype.keyType), comparable(item, dtype.valueType)) for key, item in entries
            )
        case StructType():
            return _struct(value, dtype)
    read = next((read for kind, read in _SCALARS.items() if isinstance(dtype, kind)), str)
    try:
        return dtype.typeName(), read(value) if read is not _decimal else _decimal(value, dtype)
    except (ValueError, TypeError, InvalidOperation) as error:
        hint = "; put it in quotes" if isinstance(dtype, StringType) else ""
        raise ValueError(f"{value!r} is no {dtype.simpleString()}{hint}") from error


def plain(value: Any) -> Any:
    """Return a value of a result as a YAML file has it."""
    match value:
        case Decimal():
            as_float = float(value)
            return as_float if Decimal(str(as_float)) == value else str(value)
        case date():  # a datetime, too
            return value.isoformat().replace("+00:00", "Z")
        case bytes():
            return b64encode(value).decode()
        case Mapping():
            return {key: plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
    return value


def row_text(row: Mapping[str, Any]) -> str:
    """Return a row as a line of YAML."""
    return written(plain(row), flow=True).strip()


def _list(value: Any) -> Any:
    if not isinstance(value, list | tuple):
        raise ValueError(f"expected a list; found {value!r}")
    return value


def _struct(value: Any, dtype: StructType) -> Hashable:
    if not isinstance(value, Mapping) or value.keys() - set(dtype.names):
        raise ValueError(f"expected a mapping of {', '.join(dtype.names)}; found {value!r}")
    return tuple(comparable(value.get(field.name), field.dataType) for field in dtype)


def _decimal(value: Any, dtype: DataType) -> Decimal:
    assert isinstance(dtype, DecimalType)
    found = value if isinstance(value, Decimal) else Decimal(str(value))
    rounded = found.quantize(Decimal(1).scaleb(-dtype.scale), context=_DIGITS)
    if rounded != found:
        raise ValueError(f"has more than {dtype.scale} decimals")
    return rounded


def _whole(value: Any) -> int:
    if isinstance(value, bool | float):
        raise ValueError("is no whole number")
    return int(value)


def _float(value: Any) -> str:
    return f"{float(value) + 0.0:.9g}"


def _exactly(kind: type) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if not isinstance(value, kind):
            raise ValueError(f"is no {kind.__name__}")
        return value

    return read


def _instant(value: Any) -> datetime:
    found = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def _local(value: Any) -> datetime:
    return value if isinstance(value, datetime) else datetime.fromisoformat(value)


def _date(value: Any) -> date:
    return value if isinstance(value, date) else date.fromisoformat(value)


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else b64decode(value, validate=True)


_SCALARS: Mapping[type[DataType], Callable[..., Any]] = {
    BooleanType: _exactly(bool),
    StringType: _exactly(str),
    DecimalType: _decimal,
    IntegralType: _whole,
    FractionalType: _float,
    TimestampType: _instant,
    TimestampNTZType: _local,
    DateType: _date,
    BinaryType: _bytes,
}
"""How the values of a type are read; the first kind that fits counts."""
