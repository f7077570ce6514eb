"""Tells by rows how they say what happened to them: by which preset, or by which column of their own."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lakejoin.orchestration.proposals.records import Record, Row
from lakejoin.transforms.parsing.row_ops import DEFAULT_OP, PRESETS, RowOp, parts_of

_BESIDE: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "goldengate": {"pos": ("string", "$.pos")},
    "datastream": {"made": ("timestamp", "$.source_timestamp"), "seen": ("timestamp", "$.read_timestamp")},
}
"""By preset, the columns beside the row that order its changes: type, and where they are."""
Beside = Mapping[str, tuple[str, str]]


def operation_of(rows: Sequence[Row]) -> tuple[Any, RowOp]:
    """Return what the source declares as `op`, None for nothing, and what that means.

    Rows that say nothing are new or changed ones: the file says so by the default of a column that none of them has.
    """
    for preset, op in PRESETS.items():
        if any(_is_of(op, row) for row in rows):
            return preset, op
    known = {*DEFAULT_OP.upsert, *DEFAULT_OP.delete}
    said = {str(row["op"]) for row in rows if row.get("op") is not None}
    if said and said <= known:
        return None, DEFAULT_OP
    column = "op" if not any("op" in row for row in rows) else "_op"
    return {"column": column, "default": "upsert"}, replace(DEFAULT_OP, column=column, default="upsert")


def beside(preset: Any) -> Beside:
    """Return the columns beside the row that order the changes of a preset."""
    return _BESIDE.get(preset, {}) if isinstance(preset, str) else {}


def taken_apart(records: Sequence[Record], op: RowOp) -> list[Record]:
    """Return the records with nothing but their rows; those that leave none, as deletes do, are left out."""
    found = []
    for record in records:
        said = _said(op, record.row)
        if (
            said in op.delete
            or said in dict(op.ignored)
            or (op.flag and str(record.row.get(op.flag)).lower() == "true")
        ):
            continue
        if op.other == "delete" and said:
            continue
        is_new = said in op.insert if said and op.insert else True
        table = ".".join(str(_at(record.row, path.split("."))) for path in op.origin)
        found += [
            replace(record, row=row, is_new=is_new, table=table if op.origin else record.table)
            for row in _rows(record.row, op)
        ]
    return found


def _rows(record: Row, op: RowOp) -> list[Row]:
    if op.row is None:
        return [{name: value for name, value in record.items() if name not in op.columns}]
    held = record.get(op.row)
    return [row for row in (held if isinstance(held, list) else [held]) if isinstance(row, dict)]


def _is_of(op: RowOp, row: Row) -> bool:
    said = _said(op, row)
    known = (*op.upsert, *op.delete)
    is_there = said is not None if known else op.column in row
    if not is_there or (known and said not in known):
        return False
    if op.row is not None and not isinstance(row.get(op.row), list if op.lists else dict):
        return False
    return all(_at(row, path.split(".")) is not None for path in op.origin)


def _said(op: RowOp, row: Row) -> str | None:
    found = _at(row, parts_of(op.column)[1])
    if found is None or found == "":
        return None
    return str(found).lower() if isinstance(found, bool) else str(found)


def _at(row: Any, path: Sequence[str]) -> Any:
    for name in path:
        row = row.get(name) if isinstance(row, dict) else None
    return row
