"""Checks what snapshots as sources go with: whole tables say neither what happened to a row nor when."""

from lakejoin.orchestration.config.checked_document import Reading
from lakejoin.orchestration.config.checks.sources import check_needed, check_query, refuse_keys_of_others
from lakejoin.orchestration.config.problems import KeyPath
from lakejoin.storage.sources.formats.known_formats import FORMATS
from lakejoin.storage.sources.formats.source_format import SourceFormat

_NOT_OF_ROWS = {
    "op": "the rows of a snapshot are there, and say no more",
    "tables": "a snapshot is of one table",
    "absent": "the rows of a snapshot are whole",
}
"""What a source of snapshots has not, and why."""
_NOT_OF_TABLES = {
    "sequence": "snapshots are ordered by their days and names",
    "versioned": "a snapshot does not say when a row changed or was deleted",
}
"""What a table of snapshots has not, and why."""


def check_snapshots(reading: Reading) -> None:
    """Note the mistakes of snapshots, as the sources of tables and beside change data."""
    for kind in ("tables", "streams"):
        for name in reading.names(kind):
            _check_mode(reading, (kind, name))
    for name in reading.names("tables"):
        if reading.raw("tables", name, "reconcile") is not None:
            _check_reconcile(reading, ("tables", name))


def _check_mode(reading: Reading, where: KeyPath) -> None:
    source = (*where, "source")
    if reading.value(*source, "mode") != "snapshot":
        if reading.raw(*source, "max_deleted") is not None:
            message = "needs `mode: snapshot`; add it or remove this"
            reading.refuse((*source, "max_deleted"), message, at_key=True)
        form = reading.value(*source, "format")
        if form is not None and FORMATS[form].only_snapshots:
            message = f"format {form!r} gives whole tables, and no changes; write `mode: snapshot`"
            reading.refuse((*source, "mode"), message)
        return
    if where[0] == "streams":
        reading.refuse(
            (*source, "mode"), "a stream is made of events, and a snapshot of rows; declare a table"
        )
    _check_rows(reading, source, "mode", "use `mode: changes`")
    for name, why in _NOT_OF_TABLES.items():
        if reading.raw(*where, name) is not None:
            reading.refuse((*where, name), f"{why}; remove it, or use `mode: changes`", at_key=True)


def _check_reconcile(reading: Reading, where: KeyPath) -> None:
    source = (*where, "reconcile")
    if reading.value(*where, "source", "mode") == "snapshot":
        reading.refuse(
            source, "its source is snapshots already, and each is compared; remove it", at_key=True
        )
    if reading.raw(*where, "versioned") is not None:
        reading.refuse(source, "a snapshot does not say what versions there were; remove it", at_key=True)
    own = _check_rows(reading, source, "format", "name a format of rows")
    if own is not None and own.has_rows:
        check_needed(reading, source, own)
        check_query(reading, source, own)
        refuse_keys_of_others(reading, source, own)
    if own is not None and own.only_snapshots and reading.raw(*source, "every") is not None:
        message = "each `lakejoin reconcile` takes a dump of its own; remove it"
        reading.refuse((*source, "every"), message, at_key=True)


def _check_rows(reading: Reading, source: KeyPath, key: str, what_to_do: str) -> SourceFormat | None:
    """Refuse a source whose records are no rows. Returns its format; None where that has a mistake."""
    found = reading.value(*source, "format")
    own = None if found is None else FORMATS[found]
    if own is not None and not own.has_rows:
        reading.refuse((*source, key), f"records of format {found!r} are changes; {what_to_do}")
    for name, why in _NOT_OF_ROWS.items():
        if reading.raw(*source, name) is not None:
            reading.refuse((*source, name), f"{why}; remove it", at_key=True)
    return own
