"""Proposes what identifies a row, and what orders its changes, by the names of columns and their values."""

import re
from collections.abc import Mapping, Sequence
from itertools import combinations

from lakejoin.orchestration.proposals.records import Record

_NAMED = re.compile(r"^_?id$|_id$|Id$|ID$|_(?:key|no|nr|code|number)$|^uuid$", re.IGNORECASE)
_WITHIN = re.compile(r"(?:^|_)(?:line|item|pos|position|index|seq|part)$", re.IGNORECASE)
"""Names of what tells the rows of one thing apart, such as the lines of an order."""
_NO_KEYS = ("float", "double", "array", "map", "struct", "boolean", "timestamp", "date", "decimal", "binary")
_ORDERS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"^__(?:source_)?lsn$|^_ab_cdc_lsn$|^lsn$|^scn$",
        r"^__(?:source_)?ts_ms$",
        r"^(?:row_?)?version$|^(?:sequence|seq)(?:_?(?:no|nr|number))?$",
        r"updated|modified|changed|last_?(?:update|change|modif)|update_?(?:time|date|ts)",
        r"^_fivetran_synced$|^synced",
        r"^(?:ts|timestamp|event_time)$|commit_?(?:ts|time)",
    )
)
"""Names of what orders changes, the most trustworthy first."""
_MAY_ORDER = ("timestamp", "bigint", "int", "date", "decimal", "string")


def key_of(types: Mapping[str, str], records: Sequence[Record], table: str) -> tuple[tuple[str, ...], str]:
    """Return the columns of a key, and why these; none where nothing is unique.

    `types`: by column. `records`: those of new rows decide where there are any.
    """
    said = next((record.key for record in records if record.key), ())
    if said and set(said) <= types.keys():
        return said, ""
    new = [record.row for record in records if record.is_new] or [record.row for record in records]
    able = [name for name, dtype in types.items() if not dtype.startswith(_NO_KEYS)]
    own = [
        name
        for name in able
        if name.lower() in {"id", "_id", f"{singular(table)}_id", f"{singular(table)}id"}
    ]
    named = [name for name in able if _NAMED.search(name)]
    why = f"unique in the {len(new):,} rows of the sample"
    for name in own:
        if _is_unique(new, (name,)):
            return (name,), why
        if all(is_there(row.get(name)) for row in new):
            is_one = len(new) == 1
            why = "" if is_one else "repeats in the sample: taken for later versions of the same row"
            return (name,), why
    within = [name for name in able if _WITHIN.search(name)]
    pairs = [*combinations(named, 2), *((name, part) for name in named for part in within if name != part)]
    for columns in (*((name,) for name in named), *pairs, *((name,) for name in able)):
        if _is_unique(new, columns):
            return columns, why
    return (), ""


def sequence_of(types: Mapping[str, str], records: Sequence[Record]) -> tuple[tuple[str, ...], str]:
    """Return the columns that order changes, and why these; none where no name says so."""
    for pattern in _ORDERS:
        for name, dtype in types.items():
            orders = pattern.search(name) and dtype.startswith(_MAY_ORDER)
            if orders and all(is_there(record.row.get(name)) for record in records):
                return (name,), "guessed by its name: make sure that it grows with each change of a row"
    return (), ""


def singular(name: str) -> str:
    """Return the name of one row of a table, as English makes it.

    >>> singular("planes"), singular("cities"), singular("addresses"), singular("status")
    ('plane', 'city', 'address', 'status')
    """
    for plural, one in (
        ("ies", "y"),
        ("sses", "ss"),
        ("ches", "ch"),
        ("xes", "x"),
        ("us", "us"),
        ("ss", "ss"),
        ("s", ""),
    ):
        if name.endswith(plural) and len(name) > len(plural) + 1:
            return name[: -len(plural)] + one
    return name


def _is_unique(rows: Sequence[Mapping[str, object]], names: tuple[str, ...]) -> bool:
    found = [tuple(row.get(name) for name in names) for row in rows]
    if not all(is_there(value) and value.__hash__ for values in found for value in values):
        return False
    return len(found) > 1 and len(set(found)) == len(found)


def is_there(value: object) -> bool:
    """Tell whether a value is one; an empty text of CSV is none."""
    return value is not None and value != ""
