"""Models how the CSV files of a source are written, and checks what Spark would refuse only when it reads them."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from lakejoin.orchestration.config.schema.frozen import Frozen
from lakejoin.transforms.parsing.csv_dialect import RFC_4180, CsvDialect, CsvEncoding

_SIGNS = frozenset(map(chr, range(1, 128))) - frozenset("\r\n")
_PARTS = re.compile(r"'[^']*'|([A-Za-z])\1*|.", re.DOTALL)
_LENGTHS = {
    **dict.fromkeys("y", 6), **dict.fromkeys("ML", 4), **dict.fromkeys("dHhkKms", 2), "D": 3, "S": 9, "a": 1, "G": 3,
    "V": 2, "z": 4, "O": 4, "X": 5, "x": 5, "Z": 5,
}  # fmt: skip
"""How often a letter may stand in a row, of those by which Spark reads."""


def check_sign(text: str) -> str:
    """A sign between fields or around them."""
    if len(text) != 1 or text not in _SIGNS or text.isalnum():
        raise ValueError(
            "expected one ASCII sign that is no letter, digit or line end, such as ';' or '|'; a tab is \"\\t\" in "
            "double quotes"
        )
    return text


def check_quote(text: str) -> str:
    """A sign around fields, or nothing."""
    return check_sign(text) if text else text


def check_date_pattern(pattern: str) -> str:
    """A pattern of a whole day."""
    letters = _letters(pattern)
    if "y" not in letters or not ("D" in letters or ("d" in letters and letters & {"M", "L"})):
        raise ValueError("expected year, month and day in Spark's letters, such as dd.MM.yyyy")
    return pattern


def check_time_pattern(pattern: str) -> str:
    """A pattern of a day and a time."""
    check_date_pattern(pattern)
    letters = _letters(pattern)
    if not (letters & {"H", "k"} or ("a" in letters and letters & {"h", "K"})):
        raise ValueError("expected a day and its hour in Spark's letters, such as dd.MM.yyyy HH:mm:ss")
    return pattern


def _letters(pattern: str) -> set[str]:
    if pattern.count("[") != pattern.count("]"):
        raise ValueError("has a bracket that is not closed; expected optional parts as in HH:mm[:ss]")
    found = set[str]()
    for part in _PARTS.finditer(pattern):
        text, letter = part[0], part[1]
        if text[0] in "'#{}" and (text[0] != "'" or len(text) < 2):
            raise ValueError(f"has {text!r}, which Spark reads in no pattern; put text into single quotes")
        if letter is None:
            continue
        if len(text) > _LENGTHS.get(letter, 0) or (letter == "V" and len(text) != 2):
            raise ValueError(
                f"has {text!r}, by which Spark reads nothing; expected letters such as yyyy, MM, dd, HH, mm, ss, SSS, "
                "XXX, and other text in single quotes"
            )
        found.add(letter)
    return found


Sign = Annotated[str, AfterValidator(check_sign)]
Nulls = Annotated[
    tuple[str, ...], BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)
]


class CsvOptions(Frozen):
    """How CSV files are written."""

    delimiter: Sign = ","
    """What stands between fields: one ASCII sign, such as `;`, `|` or `"\\t"` (in double quotes)."""
    quote: Annotated[str, AfterValidator(check_quote)] = '"'
    """What stands around fields that hold delimiters, quotes or line ends; `""` where nothing does."""
    escape: Sign | None = None
    """What stands before a quote within quotes, such as `\\`; by default a quote is doubled."""
    header: bool | None = None
    """Whether files begin with a line of names; by default they do, unless `names` are given."""
    names: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """The columns, in their order, of files without a header."""
    encoding: CsvEncoding = "utf-8"
    """How text is encoded. Files of `utf-16` begin with a byte order mark."""
    nulls: Nulls = RFC_4180.nulls
    """A text, or a list, that stands for null, instead of `\\N`; an empty field without quotes always does."""
    decimal: Literal[".", ","] = "."
    """What stands before the decimals of a number. With a comma, a number with a point is quarantined."""
    date_format: Annotated[str, AfterValidator(check_date_pattern)] | None = None
    """How dates are written, in [Spark's letters](https://spark.apache.org/docs/latest/sql-ref-datetime-pattern.html),
    such as `dd.MM.yyyy`; by default as 2013-01-09. Any other text is quarantined."""
    timestamp_format: Annotated[str, AfterValidator(check_time_pattern)] | None = None
    """How timestamps are written, such as `dd.MM.yyyy HH:mm:ss`. Without a zone in it, `timezone` says which."""

    @model_validator(mode="after")
    def _fits_together(self) -> "CsvOptions":
        if self.header is True and self.names:
            raise ValueError(
                "has `names`, and a header with names; remove one (a column says its name by `from`)"
            )
        if self.header is False and not self.names:
            raise ValueError("needs `names`, in the order of the fields, where files have no header")
        if twice := {name for name in self.names if self.names.count(name) > 1}:
            raise ValueError(f"has the name {min(twice)!r} twice; expected a name for each field")
        if self.escape is not None and not self.quote:
            raise ValueError("has `escape`, which stands before a quote, but no quote; remove one")
        if self.delimiter in {self.quote, self.escape}:
            raise ValueError(
                f"has {self.delimiter!r} as delimiter, and as quote or escape; expected two signs"
            )
        return self

    @property
    def dialect(self) -> CsvDialect:
        """What the readers want to know of it."""
        escape = "" if self.escape in {None, self.quote} else str(self.escape)
        return CsvDialect(
            self.delimiter, self.quote, escape, self.names, self.encoding, self.nulls, self.decimal,
            self.date_format, self.timestamp_format,
        )  # fmt: skip
