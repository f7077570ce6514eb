"""Reads what Spark does not tell about a CSV file: its header, its line ends, and a quote that is never closed."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TextIO

from pyspark.sql import Column
from pyspark.sql import functions as F

from lakejoin.storage.errors import SourceBroken
from lakejoin.storage.sources.files.fingerprint import open_text
from lakejoin.storage.sources.files.limits import WIDE, WIDE_TEXT, FileLimits
from lakejoin.storage.sources.planned.planned_file import PlannedFile
from lakejoin.transforms.model.schemas import POSITION
from lakejoin.transforms.parsing.csv_dialect import CsvDialect, CsvEncoding

_LONGEST_HEADER = 1_000_000
_CODECS: Mapping[CsvEncoding, str] = {
    "utf-8": "utf-8-sig", "latin-1": "iso-8859-1", "windows-1252": "cp1252", "utf-16": "utf-16",
}  # fmt: skip


@dataclass(frozen=True)
class Header:
    """The first line of a file that is not blank."""

    names: tuple[str, ...]
    line_end: str
    """What ends a record. Left to find it out, Spark would also replace it within quotes."""

    @property
    def columns(self) -> list[str]:
        """Names that Spark has for the fields: theirs may be equal, or differ in capitals only."""
        return [f"_lj_field_{index}" for index in range(len(self.names))]


def read_header(path: str, dialect: CsvDialect) -> Header:
    """Read the header of a CSV file, or take the names that are declared, and see how its lines end.

    Raises `SourceBroken`.
    """
    lines: list[str] = []
    try:
        # the rows behind the header, of which some are decoded with it, may hold anything
        with io.TextIOWrapper(open_text(path), codec_name(dialect), "surrogateescape", newline="") as text:
            names = next(
                (record for record in records_of(_remember(text, lines, path), dialect) if record), []
            )
        "".join(names if not dialect.names else ()).encode()
        if lines and lines[-1].endswith("\r"):
            raise csv.Error("a carriage return alone at its end; convert the line ends to line feeds")
    except (csv.Error, UnicodeError, OSError) as error:
        raise SourceBroken(
            f"{path}: expected a header in {dialect.encoding.upper()}, as in RFC 4180; found {error}"
        ) from error
    line_end = "\r\n" if lines and lines[-1].endswith("\r\n") else "\n"
    return Header(dialect.names if names and dialect.names else tuple(names), line_end)


def codec_name(dialect: CsvDialect) -> str:
    """What Python calls the encoding of files."""
    return _CODECS[dialect.encoding]


def records_of(lines: Iterable[str], dialect: CsvDialect) -> Iterator[list[str]]:
    """Read records without Spark, of a file's beginning. Raises `csv.Error`."""
    return csv.reader(
        lines, delimiter=dialect.delimiter, quotechar=dialect.quote or None, escapechar=dialect.escape or None,
        doublequote=not dialect.escape, quoting=csv.QUOTE_MINIMAL if dialect.quote else csv.QUOTE_NONE,
    )  # fmt: skip


def _remember(text: TextIO, passed: list[str], path: str) -> Iterator[str]:
    """The lines of a text; one that does not end where a header would have is not read into memory."""
    while line := text.readline(_LONGEST_HEADER):
        if len(line) == _LONGEST_HEADER:
            raise SourceBroken(
                f"{path}: expected a header on its first line; found a line of over {_LONGEST_HEADER:,} characters"
            )
        passed.append(line)
        yield line


def runs_to_the_end(ranges: Sequence[PlannedFile], dialect: CsvDialect) -> Column:
    """Whether a record, by its position, runs to the end of its file behind a quote that none closes."""
    position = F.col(POSITION)
    open_ended = [part for part in ranges if not part.complete and _ends_in_quotes(part.path, dialect)]
    last = [(position["file"] == part.name) & (position["line"] == part.lines) for part in open_ended]
    return reduce(or_, last, F.lit(False))


def check_records(path: str, limits: FileLimits, dialect: CsvDialect) -> None:
    """Refuse a file with a record that does not fit memory: its lines may be short. Raises `SourceTooLarge`."""
    quotes, first, size = _Quotes(dialect), 1, 0
    with _lines(path, dialect) as lines:
        for number, line in enumerate(lines, start=1):
            if not quotes.is_open:
                first, size = number, 0
            size += len(line)
            what = f"the record from line {first:,} on{WIDE_TEXT}"
            limits.check_memory(path, what, size * WIDE, about="at least ")
            quotes.pass_line(line)


def _ends_in_quotes(path: str, dialect: CsvDialect) -> bool:
    quotes = _Quotes(dialect)
    with _lines(path, dialect) as lines:
        for line in lines:
            quotes.pass_line(line)
    return quotes.is_open


def _lines(path: str, dialect: CsvDialect) -> TextIO:
    encoding = "utf-16" if dialect.encoding == "utf-16" else "iso-8859-1"
    return io.TextIOWrapper(open_text(path), encoding, newline="\n")


class _Quotes:
    """Whether a quoted field is open, line after line."""

    def __init__(self, dialect: CsvDialect) -> None:
        quote, delimiter, escape = (
            re.escape(sign) for sign in (dialect.quote, dialect.delimiter, dialect.escape)
        )
        self._quote, self.is_open = dialect.quote, False
        self._opening = re.compile(f"(?:^|{delimiter}){quote}")
        inner = f"{escape}." if escape else quote * 2
        # what follows, up to the quote that closes the field
        self._quoted = re.compile(f"(?:[^{quote}{escape}]++|{inner})*+" if quote else "", re.DOTALL)

    def pass_line(self, line: str) -> None:
        """Read on behind a line."""
        if not self._quote or self._quote not in line:
            return
        at = 0
        while True:
            if not self.is_open:
                opening = self._opening.search(line, at)
                if opening is None:
                    return
                at = opening.end()
            quoted = self._quoted.match(line, at)
            if quoted is None or quoted.end() == len(line):
                self.is_open = True
                return
            self.is_open, at = False, quoted.end() + 1
