"""Finds expressions that give another value by the wider types, by evaluating them over all rows there are.

What a foreign key was by the former types stands in the logs of its join, and what it is by the new ones comes out when
its row is looked at again. `xxhash64(code)`, `typeof(code)` and `cast(price as string)` differ; nothing but evaluating
them tells for sure.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.config.schema.expressions import referenced_columns
from lakejoin.orchestration.lake_state.inventory import log_of
from lakejoin.orchestration.lake_state.published_snapshot import published_snapshot
from lakejoin.storage.delta_table.schema_evolution import schema_of
from lakejoin.storage.errors import ConfigurationChanged
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake, joined_of
from lakejoin.storage.state.pinned_state import State
from lakejoin.transforms.model.expressions import may_raise, or_null
from lakejoin.transforms.model.group_spec import GroupSpec
from lakejoin.transforms.model.join_sides import foreign_key
from lakejoin.transforms.model.result_spec import ResultSpec
from lakejoin.transforms.model.schemas import DELETED, SEQUENCE, named
from lakejoin.transforms.model.specs import JoinSpec, StarSpec, TableSpec

_BEFORE, _NOW = "_lj_before", "_lj_now"


def joins_that_see_types(
    pipeline: Pipeline, spark: SparkSession, lake: Lake, journal: Journal, joins: Collection[str],
    grown: Collection[str],
) -> set[str]:  # fmt: skip
    """Those of some joins of tables that may have other rows by the declared types.

    That is where some left row has another foreign key by them. Of a join with `select` or `where`, and of a star, it
    is where it computes anything of a wider column: to evaluate that, all sides would have to be joined. `grown`:
    tables and streams with new or wider columns. Raises `ConfigurationChanged` for the condition of a table or stream,
    or the foreign key of its join, of which that is true: what it has joined is not joined again.
    """
    if journal.last is None:
        return set()
    state, found = State(spark, lake, published_snapshot(journal)), set[str]()
    for name in joins:
        join = pipeline.spec_of_join(name)
        if not isinstance(join, JoinSpec) or join.select is not None or join.where is not None:
            if _computes_of_wider(pipeline, lake, join, grown):
                found.add(name)
            continue
        ((_, _, texts),) = pipeline.foreign_keys(name)
        if set(texts) <= set(join.left_columns.names):
            continue  # a column: its value is equal by both types
        rows = _left_rows(pipeline, state, join)
        if rows is not None and _differs(
            rows, _types_of(lake, join, rows), join.left_columns, foreign_key(join)
        ):
            found.add(name)
    refused = [("joins", name, "foreign_key") for name in found - pipeline.rebuildable.keys()]
    refused += [(pipeline.section_of(name), name, "where") for name in _conditions(pipeline, state)]
    if refused:
        why = "has another value for rows of the lake by the wider types"
        way = "undo them, or give the stream and its joins other names, under which they begin anew"
        raise ConfigurationChanged(*[str(pipeline.problem(path, f"{why}; {way}")) for path in refused])
    return found


def _computes_of_wider(pipeline: Pipeline, lake: Lake, join: ResultSpec, grown: Collection[str]) -> bool:
    """Whether an expression of a join reads a column that gets a wider type."""
    texts = [
        *join.foreign_key_texts,
        *[entry.sql for entry in join.select or ()],
        *filter(None, [join.where]),
    ]
    if isinstance(join, GroupSpec):
        texts += join.row_texts
    read = set(referenced_columns(filter(may_raise, texts)))
    right = {part.prefix + name for part in join.parts for name in _wider(pipeline, lake, part.right, grown)}
    return not read.isdisjoint(right.union(_wider(pipeline, lake, join.left, grown)))


def _wider(pipeline: Pipeline, lake: Lake, name: str, grown: Collection[str]) -> list[str]:
    """The columns of a table, stream or join that get a wider type; all of one that a migration left half done."""
    is_join = name in pipeline.joins
    declared = pipeline.spec_of_join(name).columns if is_join else pipeline.inputs[name].spec.columns
    snapshot = lake.snapshot(joined_of(name) if is_join else log_of(pipeline, name))
    if snapshot is None:
        return []
    stored = {field.name: field.dataType.simpleString() for field in schema_of(snapshot.delta)}
    differ = {f.name for f in declared if stored.get(f.name) != f.dataType.simpleString()}
    return [f.name for f in declared if f.name in differ or (name in grown and not differ)]


def _left_rows(pipeline: Pipeline, state: State, join: JoinSpec) -> DataFrame | None:
    """The rows of a join's left side, with the types that its tables have now; None where it has none."""
    if join.left in pipeline.joins:
        snapshot = state.lake.snapshot(joined_of(join.left))
        if snapshot is None:
            return None
        stored = schema_of(snapshot.delta)
        return state.joined(_as_joined(pipeline.keyed_spec(join.left), stored))
    return _records(pipeline, state, join.left)


def _as_joined(spec: JoinSpec | StarSpec | GroupSpec, stored: StructType) -> ResultSpec:
    """A join with the columns and types that its table has now."""
    if isinstance(spec, GroupSpec):
        aggregates = [
            replace(entry, dtype=stored[entry.name].dataType)
            for entry in spec.aggregates
            if entry.name in stored.names
        ]
        return replace(spec, aggregates=tuple(aggregates))
    select = spec.select and tuple(
        replace(entry, dtype=stored[entry.name].dataType)
        for entry in spec.select
        if entry.name in stored.names
    )
    left = _as_stored(spec.left_columns, stored)
    rights = [
        replace(part, right_columns=_as_stored(part.right_columns, stored, part.prefix), select=select)
        for part in spec.parts
    ]
    if isinstance(spec, StarSpec):
        return replace(spec, left_columns=left, rights=tuple(rights), select=select)
    return replace(rights[0], left_columns=left)


def _records(pipeline: Pipeline, state: State, name: str) -> DataFrame | None:
    """The records of a stream, or the rows of a table."""
    spec = _stored_spec(pipeline, state.lake, name)
    if spec is None:
        return None
    return (
        state.stream_records(spec)
        if name in pipeline.streams
        else state.all_rows(spec).where(~named(DELETED))
    )


def _stored_spec(pipeline: Pipeline, lake: Lake, name: str) -> TableSpec | None:
    """A table or stream with the columns and types that its log has now; None where there is no log."""
    log, spec = lake.snapshot(log_of(pipeline, name)), pipeline.inputs[name].spec
    if log is None:
        return None
    stored = schema_of(log.delta)
    sequence = stored[SEQUENCE].dataType
    assert isinstance(sequence, StructType)
    return replace(spec, columns=_as_stored(spec.columns, stored), sequence=sequence)


def _as_stored(columns: StructType, stored: StructType, prefix: str = "") -> StructType:
    found = [
        StructField(f.name, stored[prefix + f.name].dataType)
        for f in columns
        if prefix + f.name in stored.names
    ]
    return StructType(found)


def _types_of(lake: Lake, join: JoinSpec, rows: DataFrame) -> StructType:
    """The former types of the left columns: a migration that was cut off has widened tables, but not that join's."""
    snapshot = lake.snapshot(joined_of(join.name))
    stored = rows.schema if snapshot is None else schema_of(snapshot.delta)
    return _as_stored(join.left_columns, stored)


def _conditions(pipeline: Pipeline, state: State) -> Iterator[str]:
    """The tables and streams whose condition does not hold by the declared types for a row that it held for."""
    for name, read in pipeline.inputs.items():
        rows = _records(pipeline, state, name) if read.where not in {None, *read.columns} else None
        if rows is not None:
            former = _as_stored(read.spec.columns, rows.schema)
            condition = or_null(F.expr(read.condition or "").cast("boolean"))
            if _differs(rows, former, read.spec.columns, condition):
                yield name


def _differs(rows: DataFrame, former: StructType, declared: StructType, expression: Column) -> bool:
    """Whether an expression has two values for some row: by the former types of its columns, and by the declared."""
    there = set(rows.columns)
    before = [named(f.name).cast(f.dataType).alias(f.name) for f in former if f.name in there]
    now = [
        (named(f.name) if f.name in there else F.lit(None)).cast(f.dataType).alias(f"{_NOW}_{index}")
        for index, f in enumerate(declared)
    ]
    evaluated = rows.select(*before, *now).withColumn(_BEFORE, expression)
    widened = [F.col(f"{_NOW}_{index}").alias(name) for index, name in enumerate(declared.names)]
    both = evaluated.select(_BEFORE, *widened).withColumn(_NOW, expression)
    return not both.where(~F.col(_BEFORE).eqNullSafe(F.col(_NOW))).isEmpty()
