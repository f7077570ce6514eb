"""Reads rows of a lake as Arrow, without a JVM, at the versions that a snapshot pins.

Most are one Delta table. The current rows of a declared table and its history are a folded base and the changes behind
it, put together here as `storage.state.pinned_state` does it with Spark.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyarrow.lib import ArrowException
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from lakejoin.storage.delta_log.arrow_query import identifier, query, text_literal
from lakejoin.storage.delta_log.open_table import opened
from lakejoin.storage.delta_log.snapshot import reading_table
from lakejoin.storage.errors import LakejoinError, reason_of
from lakejoin.storage.lake.layout import Lake, changes_of, rows_of, versions_of
from lakejoin.storage.lake.plan import Plan
from lakejoin.transforms.changelog.versions import versions_schema
from lakejoin.transforms.model.schemas import (
    BATCH,
    CURRENT,
    DELETED,
    OP,
    POSITION,
    POSITION_TYPE,
    SEQUENCE,
    TIME,
    VALID_FROM,
    VALID_TO,
    VALIDITY,
    VERDICT,
    rows_schema,
)
from lakejoin.transforms.model.specs import TableSpec

_LAST = "_lj_last"
_OF_A_VALUE = "Arrow error: "
"""What DataFusion says before the reason why an expression cannot be computed for a row."""


class WrongCondition(LakejoinError):
    """A condition is no SQL over the columns, or cannot be computed for a row."""


@dataclass(frozen=True)
class ArrowRows:
    """Rows that SQL makes of tables of a lake."""

    schema: StructType
    """All columns, the internal ones among them."""
    tables: tuple[str, ...]
    """Names of the tables below the lake."""
    sql: Callable[[Plan, Mapping[str, str]], str]
    """Makes the query, of a snapshot and of the names that the tables which it has go by in SQL."""
    is_computed: bool = False
    """Whether the rows are others than those of one table."""

    def reader(
        self, lake: Lake, plan: Plan, columns: Sequence[str], where: str | None = None
    ) -> pa.RecordBatchReader:
        """Begin to read columns of the rows that a condition holds for, at the versions of a plan.

        Raises `WrongCondition`, `LakeUnusable` and `LakeInconsistent`, and pyarrow's errors while it is read.
        """
        types: pa.Schema = to_arrow_schema(StructType([self.schema[c] for c in columns]), timezone="UTC")
        there = [table for table in self.tables if table in plan.versions]
        if not there:
            return pa.RecordBatchReader.from_batches(types, [])
        names = {table: f"_lj_table_{number}" for number, table in enumerate(there)}
        with reading_table(lake.path(there[0])):
            found = {names[table]: opened(lake.path(table), plan.versions[table]) for table in there}
            rows = f"SELECT {_listed(columns)} FROM ({self.sql(plan, names)}) AS rows"
            reader = query(rows, found) if where is None else _filtered(rows, where, found)
            return reader.cast(types)

    def table(self, lake: Lake, plan: Plan, columns: Sequence[str], where: str | None = None) -> pa.Table:
        """Read the same. Raises the errors of `reader`, and none of pyarrow's."""
        reader = self.reader(lake, plan, columns, where)
        with reading_table(lake.path(self.tables[0])):
            try:
                return reader.read_all()
            except ArrowException as error:
                if where is None or _OF_A_VALUE not in str(error):
                    raise
                reason = str(error).rpartition(_OF_A_VALUE)[2]
                raise WrongCondition(f"{where!r} cannot be computed: {reason}") from error


def _filtered(rows: str, where: str, found: Mapping[str, DeltaTable]) -> pa.RecordBatchReader:
    """Begin to read the rows that a condition holds for. Raises `WrongCondition`, and what `query` raises."""
    try:
        return query(f"{rows} WHERE ({where}\n)", found)
    except DeltaError as error:
        query(rows, found)  # without the condition: else it is not to blame
        raise WrongCondition(f"{where!r} is no condition: {reason_of(error)}") from error


def stored(table: str, schema: StructType, where: str = "true") -> ArrowRows:
    """Rows of one table that a condition holds for."""
    return ArrowRows(
        schema,
        (table,),
        lambda _, names: f"SELECT {_listed(schema.names)} FROM {names[table]} WHERE {where}",
        is_computed=where != "true",
    )


def current_rows(table: TableSpec) -> ArrowRows:
    """The live rows of a declared table; of a key the last batch counts, as in `State.all_rows`."""
    schema, (base, log) = (
        rows_schema(table.columns, table.sequence),
        (rows_of(table.name), changes_of(table.name)),
    )
    columns, key = _listed(schema.names), _listed(table.key)

    def sql(plan: Plan, names: Mapping[str, str]) -> str:
        parts, behind = [], f"{identifier(BATCH)} > {plan.folded.get(base, 0)}"
        if base in names:
            parts.append(f"SELECT {columns} FROM {names[base]}")
        if log in names:
            parts.append(f"SELECT {columns} FROM {names[log]} WHERE {CURRENT} AND {behind}")
        return _first(" UNION ALL ".join(parts), columns, key, f"{BATCH} DESC", f"NOT {DELETED}")

    return ArrowRows(schema, (base, log), sql, is_computed=True)


def table_versions(table: TableSpec) -> ArrowRows:
    """The live versions of a versioned table, each with its end, as `State.versions` and `intervals` make them."""
    whole = versions_schema(table)
    stored_names = [name for name in whole.names if name != VALID_TO]
    shown = StructType(
        [*table.columns, *[whole[name] for name in VALIDITY]]
        + [field for field in whole if field.name not in {*table.columns.names, *VALIDITY}]
    )
    base, log = versions_of(table.name), changes_of(table.name)
    columns, key = _listed(stored_names), _listed(table.key)
    fields = [(SEQUENCE, name) for name in table.sequence.names] + [
        (POSITION, n) for n in POSITION_TYPE.names
    ]
    order = ", ".join(f"{column}[{text_literal(field)}] DESC NULLS LAST" for column, field in fields)

    def sql(plan: Plan, names: Mapping[str, str]) -> str:
        parts, renamed = [], [TIME if name == VALID_FROM else name for name in stored_names]
        if base in names:
            parts.append(f"SELECT {columns} FROM {names[base]}")
        if log in names:
            of_log = ", ".join(
                f"{identifier(n)} AS {identifier(s)}" for n, s in zip(renamed, stored_names, strict=True)
            )
            parts.append(
                f"SELECT {of_log} FROM {names[log]} WHERE {BATCH} > {plan.folded.get(base, 0)} AND "
                f"({VERDICT} = 'duplicate' OR {VERDICT} IN ('applied', 'history') AND {OP} <> 'truncate')"
            )
        chosen = _first(" UNION ALL ".join(parts), columns, f"{key}, {VALID_FROM}", order)
        ends = f"lead({VALID_FROM}) OVER (PARTITION BY {key} ORDER BY {VALID_FROM}) AS {VALID_TO}"
        return f"SELECT * FROM (SELECT {columns}, {ends} FROM ({chosen})) WHERE NOT {DELETED}"

    return ArrowRows(shown, (base, log), sql, is_computed=True)


def _first(rows: str, columns: str, key: str, order: str, where: str = "true") -> str:
    """The first row of each key in an order, if a condition holds for it."""
    number = f"row_number() OVER (PARTITION BY {key} ORDER BY {order}) AS {_LAST}"
    return f"SELECT {columns} FROM (SELECT *, {number} FROM ({rows})) WHERE {_LAST} = 1 AND {where}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(identifier, names))
