"""Holds what the beginning of a file says, and why of some nothing is said."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from lakejoin.orchestration.proposals.records import Record
from lakejoin.storage.errors import SourceError

RECORDS = 4_000
"""How many records of a file are looked at."""
BYTES = 16 * 1024 * 1024
"""How many bytes of its text are looked at, at most."""


class Unreadable(SourceError):
    """A file of which no sample can be taken; the message says why."""


@dataclass(frozen=True)
class FileSample:
    """What the beginning of a file says."""

    path: str
    format: str
    """`debezium`, `jsonl`, `csv`, `parquet` or `orc`."""
    records: Sequence[Record]
    names: Sequence[str] = ()
    """The columns of a file that names them beside its records."""
    types: dict[str, str] = field(default_factory=dict)
    """The types of columns that the file itself says."""
    written: dict[str, Any] = field(default_factory=dict)
    """Keys of the source that say how it is written."""
