"""Finds which columns a source file has by its first records, some hundred at most, without a JVM."""

import itertools
import json
from collections.abc import Iterable, Iterator
from typing import Any

from storage.sources.files import FoundFile
from storage.sources.fingerprint import open_text

RECORDS = 200
"""How many records are looked at; what none of them has is not found."""
BYTES = 4 * 1024 * 1024
"""How many bytes of text are looked at, at most."""


def beginning(file: FoundFile) -> str:
    """Return the text with which a file begins.

    What cannot be read has none here; reading it in a batch says what is wrong with it.
    """
    try:
        with open_text(file.path) as stream:
            return stream.read(BYTES).decode("utf-8", errors="replace")
    except (OSError, ValueError):
        return ""


def json_objects(file: FoundFile) -> Iterator[Any]:
    """Yield the first lines of a file as JSON; a torn or broken line tells nothing about columns."""
    for line in itertools.islice(beginning(file).splitlines(), RECORDS):
        try:
            yield json.loads(line)
        except (ValueError, RecursionError):
            continue


def names_of(rows: Iterable[Any]) -> list[str]:
    """Return the names of the members of those that are objects, in the order they are met."""
    return list(dict.fromkeys(name for row in rows if isinstance(row, dict) for name in row))
