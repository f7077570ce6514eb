"""Says what Spark is told of CSV files, and what its columns mean."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from lakejoin.storage.sources.text.csv_text import Header
from lakejoin.transforms.model.schemas import POSITION
from lakejoin.transforms.parsing.csv_dialect import CsvDialect

CORRUPT = "_lj_corrupt"
"""Column with a record that has too many or too few fields."""
_BYTES_OF_1252 = {number: bytes([number]) for number in range(0x80, 0xA0)}
_OF_1252 = {
    chr(number): text
    for number, byte in _BYTES_OF_1252.items()
    if (text := byte.decode("cp1252", errors="ignore"))
}
"""The signs that Windows has where ISO 8859-1 has control characters."""
_MARK = "\xef\xbb\xbf"
"""The byte order mark of UTF-8, taken for ISO 8859-1."""


def spark_options(dialect: CsvDialect) -> dict[str, str]:
    """Return the options with which Spark reads the files."""
    return {
        "header": str(not dialect.names).lower(),
        "multiLine": "true",
        "sep": dialect.delimiter,
        "quote": dialect.quote,
        "escape": dialect.escape or dialect.quote,
        "emptyValue": "",
        # Spark takes a quoted empty field for null too where null is the empty text: so null is something else
        "nullValue": "\x01null\x02",
        "encoding": "UTF-16" if dialect.encoding == "utf-16" else "ISO-8859-1",
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": CORRUPT,
        "recursiveFileLookup": "true",
    } | ({"charToEscapeQuoteEscaping": dialect.escape} if dialect.escape else {})


def decoded(header: Header, dialect: CsvDialect) -> dict[str, Column]:
    """Return the fields and the corrupt record as the text that they are."""
    found = {column: _text(F.col(column), dialect) for column in (*header.columns, CORRUPT)}
    if dialect.names and dialect.encoding == "utf-8":
        # with a header it stands before the first name
        first, is_first = header.columns[0], F.col(POSITION)["line"] == 1
        marked = is_first & F.col(first).startswith(_MARK)
        unmarked = F.when(marked, F.substr(F.col(first), F.lit(len(_MARK) + 1))).otherwise(F.col(first))
        found[first] = _text(unmarked, dialect)
    return found


def _text(column: Column, dialect: CsvDialect) -> Column:
    """The text whose bytes Spark took for ISO 8859-1, valid or not."""
    match dialect.encoding:
        case "utf-8":
            return F.encode(column, "ISO-8859-1").cast("string")
        case "windows-1252":
            return F.translate(column, "".join(_OF_1252), "".join(_OF_1252.values()))
    return column


def value_of(text: Column, dialect: CsvDialect) -> Column:
    """Return a text, null for one that stands for it."""
    return F.when(~text.isin(*dialect.nulls), text) if dialect.nulls else text
