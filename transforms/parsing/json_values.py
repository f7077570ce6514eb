"""Reads the columns of a record in JSON: as its schema says, with all digits, and the key before a change of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType

from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing.connect_schema import parse_known, read_by_schema
from lakejoin.transforms.parsing.options import Cell, ParseOptions, source_of
from lakejoin.transforms.parsing.record_forms import LINE

EXACT = "_lj_exact"
"""Column with a record whose numbers are strings with all their digits; null for one that needs none."""
_BY_SCHEMA = "_lj_by_schema"
"""Texts by the schema of the record: of the columns, then of the key before it; null where they stay as they are."""


@dataclass(frozen=True)
class Texts:
    """What a record says beside the texts of its columns (`transforms.parsing.options.source_of`)."""

    exact: Mapping[str, Column]
    """The texts in `EXACT` of the columns that are or hold decimals."""
    before: Mapping[str, Column] = field(default_factory=dict)
    """The key before an update, by its columns; empty in formats that do not say it."""
    exact_before: Mapping[str, Column] = field(default_factory=dict)
    """The same in `EXACT`."""
    moves: Column = field(default_factory=lambda: F.lit(False))
    """Whether the record may have changed its key."""
    schema: Column | None = None
    """The columns of its schema (`transforms.parsing.connect_schema`), null where there is none; None: of no record."""
    documents: bool = False
    """Rows are MongoDB's."""


def read_texts(
    frame: DataFrame, table: TableSpec, options: ParseOptions, texts: Texts
) -> tuple[DataFrame, list[Cell], list[Cell]]:
    """Return the frame, the cells of the declared columns, and those of the key before the record."""
    frame = _with_old_key(frame, table, texts)
    if texts.schema is not None:
        frame = _with_schema(frame, table, texts, texts.schema)

    def cell(name: str, source: str, exact: Column | None, called: str) -> Cell:
        dtype, text = table.columns[name].dataType, F.col(source)
        known = F.lit(False) if texts.schema is None else is_known(table, source)
        return Cell(called, dtype, text, parse_known(text, dtype, options.of_column(name), exact, known))

    columns = [
        cell(name, source_of(table, name), texts.exact.get(name), name) for name in table.columns.names
    ]
    old_key = [
        cell(name, _old_source(table, name), texts.exact_before.get(name), f"before.{name}")
        for name in texts.before
    ]
    return frame, columns, old_key


def is_known(table: TableSpec, source: str) -> Column:
    """Whether the record itself says how a text is written. `source`: its column in the frame."""
    return F.get(_BY_SCHEMA, F.lit(list(_sources(table)).index(source))).isNotNull()


def _old_source(table: TableSpec, name: str) -> str:
    return f"_lj_was_{table.key.index(name)}"


def _sources(table: TableSpec) -> dict[str, str]:
    """The columns of a frame with texts, each with the declared column that it is of."""
    names = {source_of(table, name): name for name in table.columns.names}
    return names | {_old_source(table, name): name for name in table.key}


def _with_old_key(frame: DataFrame, table: TableSpec, texts: Texts) -> DataFrame:
    """Put the key before an update beside the one after it, where they may differ."""
    if not texts.before:
        return frame
    differs = [old.isNotNull() & (old != F.col(source_of(table, name))) for name, old in texts.before.items()]
    if any(isinstance(table.columns[name].dataType, DecimalType) for name in table.key):
        differs.append(F.col(EXACT).isNotNull())  # texts that lost digits may look alike
    moved = texts.moves & reduce(or_, differs)
    return frame.withColumns(
        {
            _old_source(table, name): F.when(moved, F.coalesce(old, F.col(source_of(table, name))))
            for name, old in texts.before.items()
        }
    )


def _with_schema(frame: DataFrame, table: TableSpec, texts: Texts, schema: Column) -> DataFrame:
    """Read the texts by the schema of the record, if it has one."""
    sources = [source for source in _sources(table) if source in frame.columns]
    fields = {source: table.columns[name] for source, name in _sources(table).items()}
    values = [(table.name_in_source(fields[s].name), fields[s].dataType, F.col(s)) for s in sources]
    by_schema = read_by_schema(F.col(LINE), schema, values, documents=texts.documents)
    return frame.withColumn(_BY_SCHEMA, by_schema).withColumns(
        {s: F.coalesce(F.get(_BY_SCHEMA, F.lit(index)), F.col(s)) for index, s in enumerate(sources)}
    )
