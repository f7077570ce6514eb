"""Tells which value a key of a versioned table had when."""

from lakejoin.orchestration.explain.explanation import Finding
from lakejoin.orchestration.explain.log_rows import MOST, Key, Logs, Row
from lakejoin.orchestration.explain.sentences import counted, place, shown_values, valid
from lakejoin.storage.state.arrow_rows import table_versions
from lakejoin.transforms.model.schemas import BATCH, POSITION, VALID_FROM, VALID_TO
from lakejoin.transforms.model.specs import TableSpec


def version_findings(logs: Logs, table: TableSpec, key: Key) -> list[Finding]:
    """Return the live versions of a key, the last of them. Raises what reading the lake raises."""
    rows = versions(logs, table, key)
    left_out = (
        [Finding(f"left out: {counted(len(rows) - MOST, 'older version')}")] if len(rows) > MOST else []
    )
    shown = [Finding(said(row), {"row": shown_values(row, table.columns)}) for row in rows[-MOST:]]
    return [Finding("its versions, by event time", because=(*left_out, *shown))] if rows else []


def versions(logs: Logs, table: TableSpec, key: Key) -> list[Row]:
    """Return the live versions of a key by their times."""
    kept = table_versions(table)
    names = [*table.columns.names, VALID_FROM, VALID_TO, BATCH, POSITION]
    found = kept.table(logs.lake, logs.plan, names, key.among(table.key))
    rows: list[Row] = found.sort_by([(VALID_FROM, "ascending")]).to_pylist(maps_as_pydicts="lossy")
    return rows


def said(row: Row) -> str:
    """Return a sentence about a version."""
    return f"{valid(row)}: {place(row)}, batch {row[BATCH]}"
