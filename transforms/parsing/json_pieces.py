"""Cuts a text of JSON into its records, however they are laid out: several on a line, over several lines, in lists.

A piece is an object or another value, as it is written. What is no JSON is a piece up to the end of its line, so that
it can be told and vanishes nowhere; with the next line another record may begin.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F

from transforms.parsing.json_patterns import STRING, inside

_LEVELS = 64
"""Levels of a record that spans lines, or shares one; a deeper one is whole only on a line of its own."""
_WHOLE = rf'\{{{inside(_LEVELS)}\}}|{STRING}|[^\s\[\]{{}},"]++'
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
