"""CSV files that end within a quoted field: the last record swallowed those behind it, and could pass for a good one.

Spark's reader tells neither that nor where it began. So the lines with quotes are followed here, of files only whose
last line or last quote has no end.
"""

import io
import re
from collections.abc import Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column
from pyspark.sql import functions as F

from storage.sources.fingerprint import open_text
from storage.sources.line_numbers import FileRange
from transforms.model.schemas import POSITION

_OPENING = re.compile('(?:^|,)"')
_QUOTED = re.compile('(?:[^"]++|"")*+')
"""What follows, up to the quote that closes the field."""


def runs_to_the_end(ranges: Sequence[FileRange]) -> Column:
    """Whether a record, by its position, runs to the end of its file behind a quote that none closes."""
    position = F.col(POSITION)
    open_ended = [part for part in ranges if not part.complete and _ends_in_quotes(part.path)]
    last = [(position["file"] == part.name) & (position["line"] == part.lines) for part in open_ended]
    return reduce(or_, last, F.lit(False))


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
