"""Writes two tests to begin with, for a pipeline that has none."""

from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    NumericType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from lakejoin.orchestration.config import Join, Pipeline
from lakejoin.orchestration.config.schema.model import Table
from lakejoin.orchestration.unit_tests.declared import op_key
from lakejoin.orchestration.unit_tests.values import row_text

_SAMPLES: Mapping[type[DataType], tuple[Any, Any]] = {
    BooleanType: (False, True),
    NumericType: (1, 2),
    StringType: ("a", "b"),
    DateType: ("2026-01-01", "2026-01-02"),
    TimestampType: ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),
    TimestampNTZType: ("2026-01-01T00:00:00", "2026-01-02T00:00:00"),
}
"""A value of a type, and one that comes after it."""


def example_tests(pipeline: Pipeline) -> str | None:
    """Return the text of a file with a test of a row that is joined and one of a row that goes; None without a join.

    Of the first join of two tables by columns.
    """
    join = next((join for join in pipeline.joins_of_tables.values() if _is_plain(pipeline, join)), None)
    if not isinstance(join, Join):
        return None
    left, right = (pipeline.tables[side] for side in join.sides)
    keys = _values(right.spec.columns, right.key)
    refers = dict(zip(join.foreign_key, keys.values(), strict=True))
    row = _values(left.spec.columns, left.key) | refers
    result = {key: row[key] for key in left.key} | {
        f"{join.prefix}{key}": value for key, value in keys.items()
    }
    given = [(join.right, _record(right, keys)), (join.left, _record(left, row))]
    gone = {op_key(left.columns): "d"} | _record(left, {key: row[key] for key in left.key}, place=1)
    return "\n".join(
        [
            "# Unit tests, run by `lakejoin test`: records that are given, and the rows that should come of them.",
            f"a row of {join.left} finds its row of {join.right}:",
            *_given(given),
            "  expect:",
            f"    {join.name}:",
            f"      - {row_text(result)}",
            "",
            f"a row of {join.left} that is deleted leaves the result:",
            *_given(given),
            "  when:",
            f"    - {join.left}: [{row_text(gone)}]",
            "  expect:",
            f"    {join.name}: []",
            "",
        ]
    )


def _is_plain(pipeline: Pipeline, join: object) -> bool:
    """Whether it joins tables without conditions, by columns whose types have samples."""
    if not isinstance(join, Join) or join.select is not None or join.where is not None:
        return False
    sides = [pipeline.tables.get(side) for side in join.sides]
    if any(side is None or side.where is not None for side in sides):
        return False
    left, right = (pipeline.tables[side] for side in join.sides)
    columns = [*[left.spec.columns[key] for key in left.key], *[right.spec.columns[key] for key in right.key]]
    return set(join.foreign_key) <= left.columns.keys() and all(_sample(field.dataType) for field in columns)


def _given(records: Iterable[tuple[str, Mapping[str, Any]]]) -> list[str]:
    by_table: dict[str, list[str]] = {}
    for name, record in records:
        by_table.setdefault(name, []).append(row_text(record))
    return ["  given:", *[f"    {name}: [{', '.join(texts)}]" for name, texts in by_table.items()]]


def _record(table: Table, values: Mapping[str, Any], place: int = 0) -> dict[str, Any]:
    """Return a record of a table, with what orders it."""
    ordering = [name for name in (*table.sequence, table.event_time) if name in table.columns]
    return {**values, **_values(table.spec.columns, [name for name in ordering if name not in values], place)}


def _values(columns: StructType, names: Iterable[str], place: int = 0) -> dict[str, Any]:
    samples = {name: _sample(columns[name].dataType) for name in names}
    return {name: sample[place] for name, sample in samples.items() if sample is not None}


def _sample(dtype: DataType) -> tuple[Any, Any] | None:
    return next((sample for kind, sample in _SAMPLES.items() if isinstance(dtype, kind)), None)
