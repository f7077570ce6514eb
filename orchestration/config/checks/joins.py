"""Checks what must fit together between tables and joins: sides, order, foreign keys, names in the joined table."""

from collections.abc import Callable, Mapping

from pyspark.sql.types import DataType, StringType

from lakejoin.orchestration.config.checked_document import Reading
from lakejoin.orchestration.config.checks.groups import (
    check_columns,
    check_own_columns,
    check_shared_name,
    check_source,
)
from lakejoin.orchestration.config.checks.histories import check_history_of_groups, check_history_of_join
from lakejoin.orchestration.config.checks.join_columns import (
    RightColumns,
    key_of_side,
    left_side,
    result_of,
    right_sides,
)
from lakejoin.orchestration.config.checks.results import check_result
from lakejoin.orchestration.config.checks.streams import check_stream_join
from lakejoin.orchestration.config.checks.tables import key_mistake
from lakejoin.orchestration.config.problems import KeyPath, did_you_mean, listed
from lakejoin.orchestration.config.schema.column_types import type_text
from lakejoin.orchestration.config.schema.expression_types import Columns
from lakejoin.orchestration.config.schema.expressions import expression_type
from lakejoin.orchestration.config.schema.joins import (
    TAKEN,
    AnyJoin,
    Group,
    Join,
    Star,
    StreamJoin,
    model_of_join,
)
from lakejoin.orchestration.config.schema.values import check_column_name
from lakejoin.transforms.model.schemas import quoted


def check_joins(reading: Reading) -> None:
    """Note the mistakes of every join, and of groups; a join whose sides are in doubt is not looked into."""
    for join in reading.names("joins"):
        check_shared_name(reading, "joins", join, ("table", "stream"))
        _CHECKS[model_of_join(reading.raw("joins", join))](reading, join)
    for group in reading.names("groups"):
        _CHECKS[Group](reading, group)
    _check_cycles(reading)
    for group in reading.names("groups"):
        check_columns(reading, group)
        check_history_of_groups(reading, group)
    for join in reading.names("joins"):
        _check_result_key(reading, join)
        _check_foreign_key(reading, join)
        _check_clashes(reading, join)
        check_result(reading, join)
        check_history_of_join(reading, join)


def _check_sides(reading: Reading, join: str) -> None:
    _check_left(reading, join)
    _check_right(reading, ("joins", join, "right"))


def _check_star(reading: Reading, join: str) -> None:
    _check_left(reading, join)
    for side in reading.names("joins", join, "rights"):
        path = ("joins", join, "rights", side)
        if side in TAKEN:
            message = f"a table of every join is called '{side}'; give the right side another name"
            reading.refuse(path, message, at_key=True)
        _check_right(reading, (*path, "table"))


_CHECKS: Mapping[type[AnyJoin], Callable[[Reading, str], None]] = {
    Join: _check_sides,
    Star: _check_star,
    StreamJoin: check_stream_join,
    Group: check_source,
}
"""What must fit together in a join of each kind, beside what all joins have in common."""


def _check_left(reading: Reading, join: str) -> None:
    left = reading.value("joins", join, "left")
    known = [name for kind in ("tables", "joins", "groups") for name in reading.names(kind)]
    path = ("joins", join, "left")
    if left in reading.names("streams"):
        reading.refuse(
            path, f"'{left}' is a stream; join it with `stream` and `table` in place of `left` and `right`"
        )
    elif left in reading.names("joins") and model_of_join(reading.raw("joins", left)) is StreamJoin:
        reading.refuse(path, f"'{left}' is the join of a stream, and only adds rows; begin with a table")
    elif left is not None and left not in known:
        message = f"no table, join or groups are named '{left}'{did_you_mean(left, known)}"
        reading.refuse(path, f"{message} (there are: {listed(known)})")


def _check_right(reading: Reading, path: KeyPath) -> None:
    right, known = reading.value(*path), [*reading.names("tables"), *reading.names("groups")]
    if right is None or right in known:
        return
    if right in reading.names("joins"):
        message = f"'{right}' is a join; a join may only be a left side"
    elif right in reading.names("streams"):
        message = f"'{right}' is a stream; a right side is a table, or groups"
    else:
        message = f"no table or groups are named '{right}'{did_you_mean(right, known)}"
    reading.refuse(path, f"{message} (there are: {listed(known)})")


def _check_result_key(reading: Reading, join: str) -> None:
    combined = reading.value("joins", join, "result_key") == "combined"
    if combined and reading.value("joins", join, "how") == "left":
        reading.refuse(
            ("joins", join, "result_key"),
            "'combined' needs how: inner; a left join keeps rows that match nothing, and such a row has no right key "
            "to be identified by. Write how: inner, or remove result_key",
        )


def _check_cycles(reading: Reading) -> None:
    """Name each cycle once, at its join that comes first in the file."""
    seen: set[str] = set()
    read = _sides(reading)
    for start in read:
        chain = _cycle(start, read)
        if chain and not seen & set(chain):
            seen |= set(chain)
            message = f"these joins make a cycle: {' → '.join([*chain, start])}"
            reading.refuse(
                read[start][chain[1] if len(chain) > 1 else start], f"{message}; begin it with a table"
            )


def _sides(reading: Reading) -> dict[str, dict[str, KeyPath]]:
    """Which joins and groups each of them reads, and where the file says so."""
    tables, found = set(reading.names("tables")), dict[str, dict[str, KeyPath]]()
    for kind in ("joins", "groups"):
        for name in set(reading.names(kind)) - tables:
            sides: list[KeyPath] = [(kind, name, key) for key in ("left", "right", "of")]
            sides += [(kind, name, "rights", side, "table") for side in reading.names(kind, name, "rights")]
            found[name] = {value: path for path in sides if (value := reading.value(*path)) is not None}
    names = [name for kind in ("joins", "groups") for name in reading.names(kind) if name in found]
    return {name: {side: path for side, path in found[name].items() if side in found} for name in names}


def _cycle(start: str, read: Mapping[str, Mapping[str, KeyPath]]) -> list[str]:
    """The joins that lead from one back to itself, with the fewest between; none where it leads nowhere back."""
    ways, known = [[start]], {start}
    for way in ways:  # grows meanwhile
        for side in read[way[-1]]:
            if side == start:
                return way
            if side not in known:
                known.add(side)
                ways.append([*way, side])
    return []


def _check_foreign_key(reading: Reading, join: str) -> None:
    columns = left_side(reading, join)
    if columns is not None:
        for side in right_sides(reading, join):
            _check_key_to(reading, side, columns)


def _check_key_to(reading: Reading, side: RightColumns, columns: Columns) -> None:
    """The foreign key to one right side. `columns`: those of the left side."""
    path, parts = (*side.path, "foreign_key"), reading.value(*side.path, "foreign_key")
    if parts is None:
        return
    key, right_columns = key_of_side(reading, side.name or ""), side.columns or {}
    if key is not None and len(parts) != len(key):
        message = f"{len(parts)} given, but the key of '{side.name}' has {len(key)} ({listed(key)}); give one for each"
        reading.refuse(path, message)
        key = None
    for index, text in enumerate(parts):
        expected = right_columns.get(key[index]) if key else None
        target = f"{side.name}.{key[index]}" if key else ""
        mistake = _part_mistake(text, columns, target, expected)
        if mistake:
            reading.refuse((*path, index), mistake)


def _part_mistake(text: str, columns: Columns, target: str, expected: DataType | None) -> str | None:
    """What is wrong with one entry of a foreign key, None if nothing."""
    try:
        dtype = expression_type(text, columns)
    except ValueError as error:
        return f"{text!r} {error}" if not str(error).startswith("no column") else str(error)
    if dtype is None:
        return None
    source = quoted(text) if text in columns and not text.isidentifier() else text
    return type_mistake(text, source, dtype, target, expected)


def type_mistake(
    text: str, source: str, dtype: DataType, target: str, expected: DataType | None
) -> str | None:
    """What is wrong with the type of an entry of a foreign key, None if nothing.

    `source`: the entry as SQL. `target`: the column of the right key that it is to equal, and `expected` its type.
    """
    if mistake := key_mistake(dtype):
        return f"{text!r} is {mistake}"
    if expected is None or dtype == expected:
        return None
    # Where a cast may fail it must not stop the batch for one bad row.
    cast = "cast" if expected == StringType() else "try_cast"
    types = f"{text!r} is {type_text(dtype)}, but the right key {target} is {type_text(expected)}"
    return f'{types}; expected exactly the same type, as in "{cast}({source} as {type_text(expected)})"'


def _check_clashes(reading: Reading, join: str) -> None:
    left, sides = left_side(reading, join), right_sides(reading, join)
    if left is None or any(side.columns is None or side.prefix is None for side in sides):
        return
    taken = {name.lower() for name in left}
    other = "the left"
    for side in sides:
        taken |= _check_prefix(reading, side, taken, other)
        other = "another"
    check_own_columns(reading, ("joins", join), result_of(reading, join) or ())


def _check_prefix(reading: Reading, side: RightColumns, taken: set[str], other: str) -> set[str]:
    """What a prefix makes of the columns of a right side, in small letters. `taken`: names of the sides before it."""
    path, prefix = (*side.path, "prefix"), side.prefix or ""
    named = [prefix + name for name in side.columns or ()]
    if clashes := [name for name in named if name.lower() in taken]:
        message = f"with the prefix {prefix!r} {other} and the right side both have {listed(clashes)}"
        reading.refuse(path, f"{message}; choose another prefix")
    for name in named:
        try:
            check_column_name(name)
        except ValueError as error:
            reading.refuse(path, f"the prefix {prefix!r} makes {name!r}: {error}")
            break
    return {name.lower() for name in named}
