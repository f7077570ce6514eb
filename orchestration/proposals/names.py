"""Makes names of tables and columns, and their types, such as a configuration takes."""

import re
from collections.abc import Collection

from lakejoin.orchestration.config.schema.column_types import parse_type
from lakejoin.orchestration.config.schema.values import COLUMN_PATTERN

_NO_NAME = re.compile(r"[^a-z0-9_]+")
_UNSTORABLE = re.compile(r"[ ,;{}()\n\t=]+")
_LONGEST = 63


def known_type(dtype: str) -> str:
    """The type as it may be declared: what the configuration does not know is text."""
    try:
        parse_type(dtype)
    except ValueError:
        return "string"
    return dtype


def table_name(text: str) -> str:
    """Return a text as the name of a table.

    >>> table_name("Order Lines"), table_name("2013_flights")
    ('order_lines', 't_2013_flights')
    """
    name = _NO_NAME.sub("_", text.lower()).strip("_")[: _LONGEST - 10] or "table_1"
    return name if name[0].isalpha() and name != "quarantine" else f"t_{name}"


def column_name(name: str, taken: set[str]) -> str:
    """Return the name of a column that Delta Lake stores and that no other has, in capitals or not."""
    written = _UNSTORABLE.sub("_", name).strip("_") or "column"
    written = (
        written
        if re.fullmatch(COLUMN_PATTERN, written) and not written.lower().startswith("_lj_")
        else "c" + written
    )
    is_storable = re.fullmatch(COLUMN_PATTERN, name) and not _UNSTORABLE.search(name)
    found, number = name if is_storable else written, 2
    while found.lower() in taken:
        found, number = f"{written}_{number}", number + 1
    return found


def free_name(name: str, taken: Collection[str]) -> str:
    """Return a name, with a number behind it where it is taken."""
    found, number = name, 2
    while found in taken:
        found, number = f"{name}_{number}", number + 1
    return found
