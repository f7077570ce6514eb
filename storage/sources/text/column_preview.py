"""Finds what a source file has by its first records, some hundred at most, without a JVM: columns, and their types."""

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from lakejoin.storage.errors import SourceError
from lakejoin.storage.sources.files.fingerprint import open_text
from lakejoin.storage.sources.files.source_files import FoundFile

RECORDS = 200
"""How many records are looked at; what none of them has is not found."""
BYTES = 4 * 1024 * 1024
"""How many bytes of text are looked at, at most."""

_FILES, _BYTES = 16, 1024 * 1024
_TYPES = re.compile(rb'schema\\*"\s*:\s*\{|\{\s*\\*"(?:\$|scale\\*")')
"""What says how a value is written: a schema beside a record, or the value itself. In a string it has backslashes."""


def says_types(paths: Sequence[str]) -> bool:
    """Whether records of files say how their values are written, as far as the beginnings of some of them show.

    It is a setting of what wrote them all. Where that changed within the files at hand, their values are asked about as
    those of a source that says nothing.
    """
    step = max(1, -(-len(paths) // _FILES))
    return any(describes(_bytes(path, _BYTES)) for path in {*paths[::step], *paths[-1:]})


def describes(text: bytes) -> bool:
    """Whether a text of JSON says somewhere how a value is written."""
    return _TYPES.search(text) is not None


def _bytes(path: str, most: int) -> bytes:
    """The bytes with which a file begins, unpacked; of what cannot be read none."""
    try:
        with open_text(path) as stream:
            return bytes(stream.read(most))
    except (OSError, ValueError, SourceError):
        return b""


def beginning(file: FoundFile, encoding: str = "utf-8") -> str:
    """Return the text with which a file begins.

    What cannot be read has none here; reading it in a batch says what is wrong with it.
    """
    return _bytes(file.path, BYTES).decode(encoding, errors="replace")


def json_objects(file: FoundFile, *, one_per_line: bool = True) -> Iterator[Any]:
    """Yield the first records of a file of JSON; one that is torn or broken tells nothing about columns."""
    text = beginning(file)
    if one_per_line:
        yield from filter(None, map(parsed, itertools.islice(text.splitlines(), RECORDS)))
    else:
        yield from itertools.islice(pieces(text), RECORDS)


def pieces(text: str) -> Iterator[Any]:
    """Yield objects that share lines, span lines or lie in lists, up to the first that is broken."""
    decoder, place = json.JSONDecoder(), text.find("{")
    while place >= 0:
        try:
            found, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            return
        yield found
        place = text.find("{", place)


def parsed(line: str) -> Any:
    """Return what a line holds; None for one that is broken."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def names_of(rows: Iterable[Any]) -> list[str]:
    """Return the names of the members of those that are objects, in the order they are met."""
    return list(dict.fromkeys(name for row in rows if isinstance(row, dict) for name in row))
