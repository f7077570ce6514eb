"""Checks how tables of results are to be kept: names in the catalog, and the columns that a layout names."""

from collections.abc import Collection, Mapping, Sequence

from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    IntegralType,
    NumericType,
    StringType,
    StructType,
    TimestampType,
)

from lakejoin.orchestration.config.checked_document import Reading
from lakejoin.orchestration.config.checks.join_columns import columns_of_group, result_of
from lakejoin.orchestration.config.problems import KeyPath, did_you_mean, listed
from lakejoin.orchestration.config.schema.column_types import type_text
from lakejoin.orchestration.config.schema.expression_types import Columns
from lakejoin.transforms.foreign_key_join.history import IS_CURRENT
from lakejoin.transforms.model.schemas import VALID_FROM, VALID_TO

_INDEXED = 32
"""Of so many columns, fields of structs among them, Delta Lake gathers statistics, which clustering needs."""
_ALLOWED: Mapping[str, tuple[tuple[type[DataType], ...], str]] = {
    "partition_by": (
        (BooleanType, DateType, IntegralType),
        "partitions are of dates, integers or booleans: an empty text becomes null as a folder; write `cluster_by`",
    ),
    "cluster_by": (
        (NumericType, DateType, TimestampType, StringType),
        "rows are clustered by numbers, dates, times or texts",
    ),
}
"""Types of the columns that a layout may name, and what else to write."""
_OF_HISTORIES: Columns = {VALID_FROM: TimestampType(), VALID_TO: TimestampType(), IS_CURRENT: BooleanType()}


def check_materialized(reading: Reading) -> None:
    """Note what is wrong with `materialized` of results and their histories."""
    kept: list[KeyPath] = []
    for section, columns_of in (("joins", result_of), ("groups", columns_of_group)):
        for name in reading.names(section):
            places: list[KeyPath] = [(section, name), (section, name, "history")]
            for path in [(*place, "materialized") for place in places]:
                if reading.raw(*path) is not None:
                    kept.append(path)
                    _check_layout(reading, path, columns_of(reading, name), of_history="history" in path)
    _check_tables(reading, kept)


def _check_tables(reading: Reading, kept: Collection[KeyPath]) -> None:
    """Two tables may not go by one name; catalogs do not tell capital letters apart."""
    seen: dict[str, str] = {}
    for path in kept:
        table = reading.value(*path, "table")
        if table is None:
            continue
        if first := seen.get(table.lower()):
            message = f"'{table}' is the name of the table of {first}, too; give this one another"
            reading.refuse((*path, "table"), message)
        seen.setdefault(table.lower(), ".".join(map(str, path[1:-1])))


def _check_layout(reading: Reading, path: KeyPath, columns: Columns | None, *, of_history: bool) -> None:
    if reading.raw(*path, "partition_by") is not None and reading.raw(*path, "cluster_by") is not None:
        message = "a table is clustered, or has partitions, not both; remove `partition_by` or `cluster_by`"
        reading.refuse((*path, "cluster_by"), message)
    if columns is None:
        return
    known = {**columns, **_OF_HISTORIES} if of_history else columns
    for key, allowed in _ALLOWED.items():
        names = reading.value(*path, key)
        if names is not None:
            _check_columns(reading, (*path, key), names, known, allowed)
    if not of_history:
        _check_indexed(reading, path, columns)
    for name in reading.value(*path, "comments") or ():
        if name not in known:
            reading.refuse((*path, "comments", name), _unknown(name, known), at_key=True)


def _check_columns(
    reading: Reading, path: KeyPath, names: Sequence[str], known: Columns,
    allowed: tuple[tuple[type[DataType], ...], str],
) -> None:  # fmt: skip
    types, what = allowed
    for index, name in enumerate(names):
        if name not in known:
            reading.refuse((*path, index), _unknown(name, known))
        elif name in names[:index]:
            reading.refuse((*path, index), f"'{name}' stands here twice; remove it")
        elif (dtype := known[name]) is not None and not isinstance(dtype, types):
            reading.refuse((*path, index), f"'{name}' is {type_text(dtype)}, and {what}")


def _check_indexed(reading: Reading, path: KeyPath, columns: Columns) -> None:
    """Clustering needs statistics, and a table of a result has them of its first columns only."""
    first, count = set[str](), 0
    for name, dtype in columns.items():
        count += _leaves(dtype)
        if count <= _INDEXED:
            first.add(name)
    for index, name in enumerate(reading.value(*path, "cluster_by") or ()):
        if name in columns and name not in first:
            message = (
                f"'{name}' is not among the first {_INDEXED} columns, of which Delta Lake has statistics"
            )
            reading.refuse((*path, "cluster_by", index), f"{message}; put it before others by `select`")


def _leaves(dtype: DataType | None) -> int:
    return sum(_leaves(field.dataType) for field in dtype) if isinstance(dtype, StructType) else 1


def _unknown(name: str, known: Columns) -> str:
    return f"no column is named '{name}'{did_you_mean(name, list(known))} (there are: {listed(known)})"
