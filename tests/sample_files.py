"""Makes samples of files that are nowhere: records by the name of their file."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lakejoin.orchestration.proposals.file_samples import FileSample
from lakejoin.orchestration.proposals.proposal import Proposal, completed, proposed_tables
from lakejoin.orchestration.proposals.records import Record, record_of

Files = Mapping[str, Sequence[Any]]


def event(table: str, after: Any, op: str = "c", **source: Any) -> dict[str, Any]:
    """Return an event of Debezium's, of a table of the schema public."""
    return {
        "before": None,
        "after": after,
        "op": op,
        "source": {"schema": "public", "table": table, "lsn": 1, **source},
    }


def read(files: Files) -> Callable[[str], FileSample]:
    """Return what reads these files: of CSV the rows as texts, of others what a line of JSON would hold."""

    def sample(name: str) -> FileSample:
        rows = files[name]
        if name.endswith(".csv"):
            return FileSample(name, "csv", [Record(row) for row in rows], list(rows[0]) if rows else [])
        records = [found for row in rows if (found := record_of(json.loads(json.dumps(row)))) is not None]
        return FileSample(name, "debezium" if any(found.is_event for found in records) else "jsonl", records)

    return sample


def proposed(files: Files) -> Proposal:
    """Return what is proposed for files."""
    return completed(*proposed_tables(files, read(files)))
