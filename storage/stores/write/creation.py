"""Creates the table of a store: its columns, what Delta keeps statistics of, and the layout as a property."""

from datetime import timedelta
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.types import BooleanType, LongType, StructField, StructType, TimestampType

from lakejoin.storage.delta_table.footer_statistics import STATISTICS
from lakejoin.storage.spark.start import NO_CLEANUP
from lakejoin.storage.stores.errors import StoreUnreadable, WrongDuration, WrongKey
from lakejoin.storage.stores.write.layout import DELETED, OBSERVED, PLACE, PROPERTY, PUT, Kind, Layout
from lakejoin.transforms.model.schemas import quoted

INTERNAL = StructType(
    [
        StructField(DELETED, BooleanType()),
        StructField(PUT, LongType()),
        StructField(PLACE, LongType()),
        StructField(OBSERVED, LongType()),
    ]
)
"""What every row of a store has beside the columns that it was made with."""
_WITHOUT_STATISTICS = {"binary", "boolean"}

Columns = StructType | str
"""Columns with their types, or the text of them as in SQL: `id bigint, name string`."""


def _typed(found: Columns) -> StructType:
    if isinstance(found, StructType):
        return found
    columns = StructType.fromDDL(found)
    assert isinstance(columns, StructType)
    return columns


def create_table(  # noqa: PLR0913 - what a layout says beside names is a choice of its own
    spark: SparkSession, path: str, kind: Kind, key: Columns, value: Columns,
    *, retention: timedelta | None = None, window: timedelta | None = None, duplicates: bool = False,
) -> None:  # fmt: skip
    """Make the table of a store of a kind; columns in a text are read by the session.

    Raises `WrongKey` for columns it cannot have, `WrongDuration`, and `StoreUnreadable` where a table is.
    """
    key, value = _typed(key), _typed(value)
    names = tuple(key.names), tuple(value.names)
    layout = Layout(kind, *names, retention=retention, window=window, duplicates=duplicates)
    _check_columns(path, layout, key, value)
    _check_durations(path, layout)
    if DeltaTable.isDeltaTable(spark, path):
        raise StoreUnreadable(
            f"{path}: expected no table, found that there is a table already; open it, or make the store somewhere else"
        )
    keys = [StructField(field.name, field.dataType, nullable=False) for field in key]
    times = [StructField(name, TimestampType(), nullable=False) for name in layout.times]
    found = [f.name for f in (*keys, *times) if f.dataType.simpleString() not in _WITHOUT_STATISTICS]
    (
        DeltaTable.create(spark)
        .location(path)
        .addColumns(StructType([*keys, *times, *INTERNAL, *value]))
        .property(PROPERTY, layout.to_json())
        .property(STATISTICS, ",".join(map(quoted, [*found, PUT, OBSERVED])))
        # of a lake's tables maintenance shortens the log; a store has none, and pins nothing
        .property(NO_CLEANUP[0], "true")
        .execute()
    )


def _check_columns(path: str, layout: Layout, key: StructType, value: StructType) -> None:
    names = [*key.names, *value.names]
    reserved = {*layout.times, *INTERNAL.names}
    if not key.names or not value.names:
        raise WrongKey(
            f"{path}: expected at least one column of key and one of value, found {names}; name what it is to hold"
        )
    clash = sorted({n for n in names if n in reserved or names.count(n) > 1})
    if clash:
        raise WrongKey(
            f"{path}: expected columns with names of their own, found {', '.join(clash)} twice, or as a name that the "
            "store itself uses; rename them"
        )
    floats = [field.name for field in key if field.dataType.simpleString() in ("float", "double")]
    if floats:
        raise WrongKey(
            f"{path}: expected key columns of types whose equal values are equal bytes, found that {floats[0]} is a "
            "float; make it a decimal or a text"
        )


def _check_durations(path: str, layout: Layout) -> None:
    given: dict[str, Any] = {"retention": layout.retention, "window": layout.window}
    if layout.kind == "window" and layout.window is None:
        raise WrongDuration(f"{path}: expected a length of windows, found None; give a timedelta")
    for name, found in given.items():
        if found is not None and (not isinstance(found, timedelta) or found < timedelta()):
            raise WrongDuration(
                f"{path}: expected a {name} of no time or more, found {found!r}; give a timedelta"
            )
    if layout.retention is not None and layout.window is not None and layout.retention < layout.window:
        raise WrongDuration(
            f"{path}: expected a retention no shorter than the window of {layout.window}, found {layout.retention}; "
            "windows would be gone before they end"
        )
