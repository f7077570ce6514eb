"""Says which columns the sides and the results of joins have, while the file is checked."""

from dataclasses import dataclass

from lakejoin.orchestration.config.checked_document import Reading
from lakejoin.orchestration.config.checks.tables import columns_of, key_of
from lakejoin.orchestration.config.problems import KeyPath
from lakejoin.orchestration.config.schema.aggregates import aggregate
from lakejoin.orchestration.config.schema.expression_types import Columns
from lakejoin.orchestration.config.schema.groups import columns_of_key, key_column
from lakejoin.orchestration.config.schema.joins import Join
from lakejoin.orchestration.config.schema.select import Chosen, chosen, type_of_value


def left_side(reading: Reading, join: str) -> Columns | None:
    """The columns of the left side; None where a mistake keeps them from being known."""
    if stream := reading.value("joins", join, "stream"):
        return columns_of(reading, stream, "streams")
    return _columns_of_source(reading, reading.value("joins", join, "left"))


def source_columns(reading: Reading, group: str) -> Columns | None:
    """The columns of what is grouped, likewise."""
    return _columns_of_source(reading, reading.value("groups", group, "of"))


def _columns_of_source(reading: Reading, name: str | None) -> Columns | None:
    if name is None:
        return None
    if name in reading.names("tables"):
        return columns_of(reading, name)
    # this ends, since a cycle has been refused at one of its joins
    return columns_of_group(reading, name) if name in reading.names("groups") else result_of(reading, name)


def columns_of_group(reading: Reading, group: str) -> Columns | None:
    """The columns of groups; None where a mistake keeps them from being known."""
    columns = source_columns(reading, group)
    by, select = (reading.value("groups", group, key) for key in ("by", "select"))
    if columns is None or by is None or select is None:
        return None
    try:
        found = [
            *[key_column(column, columns) for column in columns_of_key(by)],
            *[aggregate(name, text, columns) for name, text in select.items()],
        ]
    except ValueError:
        return None
    known = [column for column in found if column is not None]
    return {column.name: column.dtype for column in known} if len(known) == len(found) else None


@dataclass(frozen=True)
class RightColumns:
    """A right side of a join in the file."""

    path: KeyPath
    """Where its keys stand: that of the join, or below `rights`."""
    name: str | None
    """The table; None where it has a mistake, as in what follows."""
    prefix: str | None
    columns: Columns | None


def key_of_side(reading: Reading, name: str) -> tuple[str, ...] | None:
    """The key of a table, or of groups; None where it has a mistake."""
    if name not in reading.names("groups"):
        return key_of(reading, name)
    by = reading.value("groups", name, "by")
    return None if by is None else tuple(column.name for column in columns_of_key(by))


def right_sides(reading: Reading, join: str) -> list[RightColumns]:
    """The right sides of a join."""
    path: KeyPath = ("joins", join)
    sides = reading.names("joins", join, "rights")
    if reading.raw("joins", join, "rights") is not None:
        return [_right_side(reading, (*path, "rights", side), "table", f"{side}_") for side in sides]
    key = "table" if "table" in reading.names("joins", join) else "right"
    return [_right_side(reading, path, key, Join.model_fields["prefix"].default)]


def _right_side(reading: Reading, path: KeyPath, key: str, prefix: str) -> RightColumns:
    name = reading.value(*path, key)
    given = reading.raw(*path, "prefix") is not None
    of_groups = name in reading.names("groups")
    columns = columns_of_group(reading, name) if of_groups else name and columns_of(reading, name)
    return RightColumns(path, name, reading.value(*path, "prefix") if given else prefix, columns)


def pair_of(reading: Reading, join: str) -> Columns | None:
    """The columns of the rows that a join brings together."""
    left, sides = left_side(reading, join), right_sides(reading, join)
    if left is None or not sides:
        return None
    pair = dict(left)
    for side in sides:
        if side.columns is None or side.prefix is None:
            return None
        pair |= {side.prefix + name: dtype for name, dtype in side.columns.items()}
    return pair


def result_of(reading: Reading, join: str) -> Columns | None:
    """The columns of a joined table."""
    pair = pair_of(reading, join)
    result = None if pair is None else _chosen(reading, join, pair)
    try:
        return (
            None if pair is None or result is None else {c.name: type_of_value(c.text, pair) for c in result}
        )
    except ValueError:
        return None


def _chosen(reading: Reading, join: str, pair: Columns) -> list[Chosen] | None:
    """What a join selects; None where that has a mistake."""
    select = reading.value("joins", join, "select")
    if select is None and reading.raw("joins", join, "select") is not None:
        return None
    try:
        return chosen(select, pair)
    except ValueError:
        return None


def _left_key(reading: Reading, join: str) -> tuple[str, ...] | None:
    """The key of the left side by its columns; None where a mistake keeps it from being known."""
    if stream := reading.value("joins", join, "stream"):
        key: tuple[str, ...] | None = reading.value("streams", stream, "key")
        return key
    left = reading.value("joins", join, "left")
    if left is None:
        return None
    if left not in reading.names("joins"):
        return key_of_side(reading, left)
    key = pair_key(reading, left)
    if key is None or reading.raw("joins", left, "select") is None:
        return key
    pair = pair_of(reading, left)
    result = None if pair is None else _chosen(reading, left, pair)
    names = {column.text: column.name for column in reversed(result or ())}
    return None if result is None else tuple(names.get(name, name) for name in key)


def pair_key(reading: Reading, join: str) -> tuple[str, ...] | None:
    """The columns of the two rows that identify a joined row."""
    left, right = _left_key(reading, join), tuple[str, ...]()
    if reading.value("joins", join, "result_key") == "combined":
        (side,) = right_sides(reading, join)
        key = key_of_side(reading, side.name or "")
        if key is None or side.prefix is None:
            return None
        right = tuple(side.prefix + name for name in key)
    return None if left is None else (*right, *left)
