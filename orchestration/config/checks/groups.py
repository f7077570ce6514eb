"""Checks groups: what is grouped, by what, and what is made of the rows of a group."""

from collections.abc import Iterable, Sequence

from lakejoin.orchestration.config.checked_document import Reading
from lakejoin.orchestration.config.checks.conditions import check_condition
from lakejoin.orchestration.config.checks.join_columns import columns_of_group, source_columns
from lakejoin.orchestration.config.checks.tables import key_mistake
from lakejoin.orchestration.config.problems import KeyPath, did_you_mean, listed
from lakejoin.orchestration.config.schema.aggregates import aggregate
from lakejoin.orchestration.config.schema.expression_types import Columns
from lakejoin.orchestration.config.schema.groups import columns_of_key, key_column
from lakejoin.orchestration.config.schema.joins import StreamJoin, model_of_join
from lakejoin.orchestration.config.schema.select import twice
from lakejoin.transforms.foreign_key_join.emissions import REDUNDANT
from lakejoin.transforms.foreign_key_join.history import IS_CURRENT
from lakejoin.transforms.model.schemas import VALID_FROM, VALID_TO

_OWN_COLUMNS = {
    "changelog": {REDUNDANT: "which emissions change nothing"},
    "history": {
        VALID_FROM: "since when a row was there",
        VALID_TO: "until when it was there",
        IS_CURRENT: "whether it is there now",
    },
}
"""What a changelog and a history have beside the columns of the result."""


def check_source(reading: Reading, group: str) -> None:
    """Note what is wrong with the name of groups, and with what is grouped."""
    check_shared_name(reading, "groups", group, ("table", "stream", "join"))
    _check_source(reading, group)


def check_columns(reading: Reading, group: str) -> None:
    """Note what is wrong with the columns of groups, and with their condition."""
    columns = source_columns(reading, group)
    if columns is not None:
        _check_key(reading, group, columns)
        _check_aggregates(reading, group, columns)
        check_condition(reading, ("groups", group, "having"), columns_of_group(reading, group), "a group")
    _check_names(reading, group)


def check_shared_name(reading: Reading, section: str, name: str, others: Sequence[str]) -> None:
    """Note where something else has a name of a section. `others`: the kinds of what comes before it in the file."""
    for kind in others:
        if name in reading.names(f"{kind}s"):
            message = f"a {kind} is named '{name}', too; tables, streams, joins and groups share their names"
            reading.refuse((section, name), message, at_key=True)


def _check_source(reading: Reading, group: str) -> None:
    path, source = ("groups", group, "of"), reading.value("groups", group, "of")
    known = [name for kind in ("tables", "joins", "groups") for name in reading.names(kind)]
    if source is None:
        return
    if source in reading.names("streams"):
        reading.refuse(path, f"'{source}' is a stream; groups are of a table, a join or other groups")
    elif source in reading.names("joins") and model_of_join(reading.raw("joins", source)) is StreamJoin:
        reading.refuse(
            path, f"'{source}' is the join of a stream, and only adds rows; group a table or a join"
        )
    elif source not in known:
        message = f"no table, join or groups are named '{source}'{did_you_mean(source, known)}"
        reading.refuse(path, f"{message} (there are: {listed(known)})")


def _check_key(reading: Reading, group: str, columns: Columns) -> None:
    for index, entry in enumerate(reading.value("groups", group, "by") or ()):
        try:
            found = [key_column(column, columns) for column in columns_of_key([entry])]
        except ValueError as error:
            reading.refuse(("groups", group, "by", index), str(error))
            continue
        for column in found:
            if column is not None and (mistake := key_mistake(column.dtype)):
                reading.refuse(("groups", group, "by", index), f"{column.name!r} is {mistake}")


def _check_aggregates(reading: Reading, group: str, columns: Columns) -> None:
    for name, text in (reading.value("groups", group, "select") or {}).items():
        try:
            aggregate(name, text, columns)
        except ValueError as error:
            reading.refuse(("groups", group, "select", name), str(error))


def _check_names(reading: Reading, group: str) -> None:
    by, select = (reading.value("groups", group, key) for key in ("by", "select"))
    if by is None or select is None:
        return
    names = [*[column.name for column in columns_of_key(by)], *select]
    if both := twice(names):
        message = f"makes a second column {listed(both)}; give it another name"
        reading.refuse(("groups", group, "select"), message, at_key=True)
    check_own_columns(reading, ("groups", group), names)


def check_own_columns(reading: Reading, path: KeyPath, names: Iterable[str]) -> None:
    """Note columns that a result has, and its changelog or its history of its own. `path`: of the result."""
    known = {name.lower() for name in names}
    for key, own in _OWN_COLUMNS.items():
        kept = reading.value(*path, key)
        if kept is None or kept is False:
            continue
        for column, what in own.items():
            if column in known:
                message = f"the {key} says in a column {column} of its own {what}"
                reading.refuse((*path, key), f"{message}; leave it out, or give the column another name")
