"""Reads what Spark does not tell about a CSV file: its header, its line ends, and a quote that is never closed."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TextIO

from pyspark.sql import Column
from pyspark.sql import functions as F

from storage.errors import SourceBroken
from storage.sources.fingerprint import open_text
from storage.sources.limits import WIDE, WIDE_TEXT, FileLimits
from storage.sources.planned_file import PlannedFile
from transforms.model.schemas import POSITION

_LONGEST_HEADER = 1_000_000
_OPENING = re.compile('(?:^|,)"')
_QUOTED = re.compile('(?:[^"]++|"")*+')
"""What follows, up to the quote that closes the field."""


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


def read_header(path: str) -> Header:
    """Read the header of a CSV file, and how its lines end. Raises `SourceBroken`."""
    lines: list[str] = []
    try:
        # the rows behind the header, of which some are decoded with it, may hold anything
        with io.TextIOWrapper(open_text(path), "utf-8-sig", "surrogateescape", newline="") as text:
            reader = csv.reader(_remember(text, lines, path))
            names = next((record for record in reader if record), [])
        "".join(names).encode()
        if lines and lines[-1].endswith("\r"):
            raise csv.Error("a carriage return alone at its end; convert the line ends to line feeds")
    except (csv.Error, UnicodeEncodeError, OSError) as error:
        raise SourceBroken(f"{path}: expected a header in UTF-8, as in RFC 4180; found {error}") from error
    return Header(tuple(names), "\r\n" if lines and lines[-1].endswith("\r\n") else "\n")


def _remember(text: TextIO, passed: list[str], path: str) -> Iterator[str]:
    """The lines of a text; one that does not end where a header would have is not read into memory."""
    while line := text.readline(_LONGEST_HEADER):
        if len(line) == _LONGEST_HEADER:
            raise SourceBroken(
                f"{path}: expected a header on its first line; found a line of over {_LONGEST_HEADER:,} characters"
            )
        passed.append(line)
        yield line


def runs_to_the_end(ranges: Sequence[PlannedFile]) -> Column:
    """Whether a record, by its position, runs to the end of its file behind a quote that none closes."""
    position = F.col(POSITION)
    open_ended = [part for part in ranges if not part.complete and _ends_in_quotes(part.path)]
    last = [(position["file"] == part.name) & (position["line"] == part.lines) for part in open_ended]
    return reduce(or_, last, F.lit(False))


def check_records(path: str, limits: FileLimits) -> None:
    """Refuse a file with a record that does not fit memory: its lines may be short. Raises `SourceTooLarge`."""
    is_open, first, size = False, 1, 0
    with io.TextIOWrapper(open_text(path), "iso-8859-1", newline="\n") as lines:
        for number, line in enumerate(lines, start=1):
            if not is_open:
                first, size = number, 0
            size += len(line)
            what = f"the record from line {first:,} on{WIDE_TEXT}"
            limits.check_memory(path, what, size * WIDE, about="at least ")
            if '"' in line:
                is_open = _is_open_behind(line, is_open=is_open)


def _ends_in_quotes(path: str) -> bool:
    is_open = False
    with io.TextIOWrapper(open_text(path), "iso-8859-1", newline="\n") as lines:
        for line in lines:
            if '"' in line:
                is_open = _is_open_behind(line, is_open=is_open)
    return is_open


def _is_open_behind(line: str, *, is_open: bool) -> bool:
    at = 0
    while True:
        if not is_open:
            opening = _OPENING.search(line, at)
            if opening is None:
                return False
            at = opening.end()
        quoted = _QUOTED.match(line, at)
        if quoted is None or quoted.end() == len(line):
            return True
        is_open, at = False, quoted.end() + 1
