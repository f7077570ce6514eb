"""Cuts a text of JSON into its records, however they are laid out: several on a line, over several lines, in lists.

A piece is an object or another value, as it is written. What is no JSON is a piece up to the end of its line, so that
it can be told and vanishes nowhere; with the next line another record may begin.
"""

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from lakejoin.transforms.parsing.json_patterns import STRING, inside, members_but, whole_object

_LEVELS = 64
"""Levels of a record that spans lines, or shares one; a deeper one is whole only on a line of its own."""
_WHOLE = rf'{whole_object(_LEVELS)}|{STRING}|[^\s\[\]{{}},"]++'
_PIECE = rf'(?s){_WHOLE}|[{{}}"][^\n]*+'
"""A record or another value, or what is broken up to the end of the line."""
_MARK = "\xef\xbb\xbf"
"""The byte order mark of UTF-8, taken for ISO 8859-1."""


def pieces_in(text: Column) -> Column:
    """The pieces of a text in their order; of each `record_of` says what it was."""
    return F.regexp_extract_all(_signs(text), F.lit(_PIECE), F.lit(0))


def record_of(piece: Column) -> Column:
    """A piece as it was written."""
    return F.encode(piece, "ISO-8859-1").cast("string")


def single_rows(record: Column, members: Sequence[str]) -> Column:
    """A record with one row in each of its lists for each that they hold; itself alone where that is one, or none.

    `members`: the first one's list says how many there are, the others' are of the same length, or null.
    """
    lists = [F.regexp_extract(record, _list(name), 1) for name in members]
    rows, *others = [F.regexp_extract_all(found, F.lit(f"(?s){whole_object()}"), F.lit(0)) for found in lists]

    def alone(row: Column, place: Column) -> Column:
        found = F.replace(record, lists[0], row)
        for text, other in zip(lists[1:], others, strict=True):
            found = F.when(text == "", found).otherwise(
                F.replace(found, text, F.coalesce(F.get(other, place), text))
            )
        return found

    return F.when(F.size(rows) > 1, F.transform(rows, alone)).otherwise(F.array(record))


def with_row_of(record: Column, members: Sequence[str]) -> Column:
    """A record with the row in the place of each list that holds one."""
    for name in members:
        found = F.regexp_extract(record, _list(name), 1)
        is_one = found.rlike(rf"(?s)^\s*+{whole_object()}\s*+$")
        record = F.when(is_one, F.replace(record, F.concat(F.lit("["), found, F.lit("]")), found)).otherwise(
            record
        )
    return record


def _list(name: str) -> str:
    """A regular expression for a record, and what stands in a list that is a member of it, group 1."""
    member = rf'"{name}"\s*+:\s*+'
    return rf"(?s)^\s*+\{{{members_but(member)}{member}\[({inside()})\]"


def is_cut_off(text: Column) -> Column:
    """Whether a text lacks the end of a list, so that records may be missing; what is broken may hold that end."""
    rest = F.regexp_replace(_signs(text), _PIECE, "")
    opened, closed = (
        F.length(rest) - F.length(F.replace(rest, F.lit(bracket), F.lit(""))) for bracket in "[]"
    )
    is_whole = F.forall(pieces_in(text), lambda piece: piece.rlike(rf"(?s)^(?:{_WHOLE})$"))
    return F.when(opened > closed, is_whole).otherwise(F.lit(False))


def _signs(text: Column) -> Column:
    """A text as ISO 8859-1, which loses no byte: so invalid UTF-8 can still be told from a replacement character."""
    signs = F.decode(text.cast("binary"), "ISO-8859-1")
    return F.when(signs.startswith(_MARK), F.substr(signs, F.lit(len(_MARK) + 1))).otherwise(signs)
