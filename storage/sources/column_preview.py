"""Which columns a source file has, by a look at its beginning: no JVM, no more than some hundred records."""

import csv
import io
import itertools
import json
from typing import Any

import pyarrow.parquet as pq

from storage.filesystem import open_file_system
from storage.sources.files import FoundFile
from storage.sources.fingerprint import open_text

RECORDS = 200
"""How many records are looked at; what none of them has is not found."""
BYTES = 4 * 1024 * 1024
"""How many bytes of text are looked at, at most."""

_OP = "op"  # what a flat row does, in every format but Debezium's


def source_columns(file: FoundFile, form: str) -> list[str]:
    """Return the names of a file's columns as far as its first records show, in the order they are met.

    What cannot be read has no columns here; reading it in a batch says what is wrong with it.
    """
    try:
        if form == "parquet":
            system, inner = open_file_system(file.path)
            names = pq.read_schema(inner, filesystem=system).names
        else:
            with open_text(file.path) as stream:
                text = stream.read(BYTES).decode("utf-8", errors="replace")
            names = (
                next(csv.reader(io.StringIO(text, newline="")), []) if form == "csv" else _json(text, form)
            )
    except (OSError, ValueError, csv.Error):
        return []
    return [name for name in names if form == "debezium" or name != _OP]


def _json(text: str, form: str) -> list[str]:
    names: dict[str, None] = {}
    for line in itertools.islice(text.splitlines(), RECORDS):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue  # a torn or broken line tells nothing about columns
        row = _row(record) if form == "debezium" else record
        if isinstance(row, dict):
            names.update(dict.fromkeys(row))
    return list(names)


def _row(record: Any) -> Any:
    """The row in a Debezium record: its last state, wherever the envelope is wrapped."""
    value = record.get("value", record) if isinstance(record, dict) else None
    if isinstance(value, dict) and "payload" in value:
        value = value["payload"]
    return (value.get("after") or value.get("before")) if isinstance(value, dict) else None
