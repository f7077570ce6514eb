"""Says how a CSV file is written where it is not as in RFC 4180, and brings its texts into the form that is read.

Numbers and times are written in the form that `transforms.parsing.typed_values` reads, whatever it was before. A text
that is not of the declared form becomes one that is of none, so that it is quarantined, not read in another way.
"""

import re
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DateType, NumericType, TimestampNTZType, TimestampType

CsvEncoding = Literal["utf-8", "latin-1", "windows-1252", "utf-16"]
_OF_ZONES = re.compile("[VzOXxZ]")
_QUOTED = re.compile("'[^']*'")
_BOUNDS = r"^(0001-01-01|9999-12-31)(T(00:00:00|23:59:59\.999999)Z?)?$"
"""What stands for a time without end (`source.infinity`), already in the form that is read."""
_NONE = "?"
"""Makes a text neither a number nor a time."""


@dataclass(frozen=True)
class CsvDialect:
    """How the files of a source are written."""

    delimiter: str = ","
    quote: str = '"'
    """Empty: fields are never quoted."""
    escape: str = ""
    """What stands before a quote within quotes; empty: another quote."""
    names: tuple[str, ...] = ()
    """The columns of files without a header."""
    encoding: CsvEncoding = "utf-8"
    nulls: tuple[str, ...] = (r"\N",)
    """Texts that stand for null, beside an empty field without quotes."""
    decimal: Literal[".", ","] = "."
    date_format: str | None = None
    timestamp_format: str | None = None
    """As Spark writes patterns."""

    @property
    def shape(self) -> dict[str, object]:
        """What says which record stands where, as far as it is not the default."""
        kept = ("delimiter", "quote", "escape", "encoding")
        found = {name: getattr(self, name) for name in kept if getattr(self, name) != getattr(RFC_4180, name)}
        return found | ({"header": False} if self.names else {})


RFC_4180 = CsvDialect()
"""A header, commas, quotes that are doubled within quotes."""


def in_plain_form(text: Column, dtype: DataType, dialect: CsvDialect) -> Column:
    """Write a number with a point, and a date or time as ISO 8601 has it."""
    match dtype:
        case NumericType() if dialect.decimal == ",":
            return F.translate(text, ",.", f".{_NONE}")
        case DateType() if dialect.date_format is not None:
            return _as_iso(text, dialect.date_format, "yyyy-MM-dd")
        case TimestampType() | TimestampNTZType() if dialect.timestamp_format is not None:
            zone = "'Z'" if has_zone(dialect.timestamp_format) else ""
            return _as_iso(text, dialect.timestamp_format, f"yyyy-MM-dd'T'HH:mm:ss.SSSSSS{zone}")
    return text


def has_zone(pattern: str) -> bool:
    """Tell whether a pattern of Spark reads a zone."""
    return _OF_ZONES.search(_QUOTED.sub("", pattern)) is not None


def _as_iso(text: Column, pattern: str, iso: str) -> Column:
    found = F.date_format(F.try_to_timestamp(text, F.lit(pattern)), iso)
    return F.coalesce(found, F.when(text.rlike(_BOUNDS), text), F.concat(F.lit(_NONE), text))
