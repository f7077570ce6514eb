"""Models the file's session, sources, tables and joins: frozen models with their defaults.

The texts below the fields make the reference in `docs/configuration.md` and the JSON Schema.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field, PrivateAttr
from pyspark.sql.types import DataType, LongType, StringType, StructField, StructType, TimestampType

from lakejoin.orchestration.config.schema.column import DeclaredColumn
from lakejoin.orchestration.config.schema.expect import InputExpect
from lakejoin.orchestration.config.schema.expressions import referenced_columns
from lakejoin.orchestration.config.schema.frozen import Frozen
from lakejoin.orchestration.config.schema.source import Source
from lakejoin.orchestration.config.schema.values import (
    ColumnName,
    Duration,
    Master,
    Sequence,
    Setting,
    SettingText,
)
from lakejoin.storage.sources.database.dumps import pattern_of
from lakejoin.storage.sources.formats.source_format import SourceFormat, SourceSpec
from lakejoin.transforms.model.expressions import RowExpression
from lakejoin.transforms.model.schemas import POSITION_TYPE, TIME, quoted
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing.options import ParseOptions
from lakejoin.transforms.parsing.source_position import SOURCE


class Spark(Frozen):
    """The Spark session."""

    master: Master = "local[*]"
    """Where Spark runs: `local[*]`, `local[4]`, `yarn`, `spark://…`, `k8s://…`."""
    conf: dict[Setting, SettingText] = Field(default={})
    """Settings of Spark by their names. Those that results depend on (time zone, ANSI mode, …) are fixed."""


class Engine(Frozen):
    """The JVM that Spark runs in."""

    resident: bool = True
    """Whether the JVM that a run starts stays for those that follow: they begin in a second instead of ten. It does not
    in containers that run one batch, in continuous integration (`CI` is set), and on a cluster."""
    idle: Duration = Field(default=timedelta(minutes=30), json_schema_extra={"default": "30 minutes"})
    """How long it waits for the next run before it ends itself."""

    def stays(self, resident: bool | None = None) -> timedelta | None:
        """How long the JVM of a run stays, None where it ends with the run; `resident`: where a run says otherwise."""
        return self.idle if (self.resident if resident is None else resident) else None


class Maintenance(Frozen):
    """When a lake is tidied up, and what may go."""

    when: Literal["after_batch", "separately"] = "after_batch"
    """`after_batch`: a run folds, compacts and condenses what is due after each batch; `separately`: only `lakejoin
    maintain` does. In both cases `lakejoin maintain` removes old files; those of the bookkeeping go when it is
    condensed."""
    retention: Duration = Field(default=timedelta(days=7), json_schema_extra={"default": "7 days"})
    """How far back readers may go (`--as-of-batch`, Delta's time travel), and how long a query may take. Files
    that only older versions need are removed; what the last finished batch and one under way need stays."""


class Named(Frozen):
    """What stands under a name of the user's."""

    _name: str = PrivateAttr("")

    @property
    def name(self) -> str:
        """The key that it stands under."""
        return self._name


class Input(Named, ABC):
    """What tables and streams of change data have in common."""

    source: Source
    """Where the change data lies; see below."""
    columns: Annotated[dict[ColumnName, DeclaredColumn], Field(min_length=1)]
    """Columns by name, with their Spark SQL type, or a mapping with more than that; see below. A source column that
    is not declared is ignored and listed by `status`; a declared one that the source lacks is null."""
    key: Annotated[tuple[str, ...], Field(min_length=1)]
    """Columns that identify a row. Not float, double, array, map or struct."""
    sequence: Sequence = ()
    """What orders the changes of one key: `source`, the position of a Debezium event in the log of its database;
    or a list of columns and of what its envelope has (`lsn`, `tx_id`, `ts_ms`, `offset`). By default the place of
    the record: date, file name, line; of a Delta table the commit version. It also decides between equal ones."""
    where: str | None = None
    """SQL condition over the row. Of a stream, records that do not meet it are no events, and `ignored`. Of a table,
    rows that do not meet it are not there: a record by which a row ceases to meet it deletes the row. One that changes
    counts for records that are read from then on."""
    max_bad_ratio: Annotated[float, Field(ge=0, le=1)] = 1.0
    """A larger share of bad records than this, of a `{date}` or of what has none, fails the batch before it is
    planned; 1.0 lets all pass into quarantine. With a smaller number many records of `parquet`, `orc` or `delta` are
    read twice."""
    max_future: Duration = Field(default=timedelta(days=1), json_schema_extra={"default": "1 day"})
    """Of streams and versioned tables: a record whose event time is further ahead than this is quarantined, for
    it would move the clock for all others. Ahead of the end of its file's date, else of the batch's clock."""
    expect: InputExpect = Field(default=InputExpect(), json_schema_extra={"default": {}})
    """What is expected of its figures, in the place of what the pipeline says; see below."""

    _dumps: str = PrivateAttr("")

    @property
    @abstractmethod
    def spec(self) -> TableSpec:
        """The table or stream as the stages take it."""

    @property
    def condition(self) -> str | None:
        """`where` as SQL: a text that is the name of a column is that column, whatever signs it holds."""
        return quoted(self.where) if self.where in self.columns else self.where

    @property
    def asked(self) -> RowExpression | None:
        """`where` as it is asked of the records."""
        sql = self.condition
        if sql is None:
            return None
        return RowExpression(f"where of {self.name}", sql, tuple(referenced_columns([sql])))

    @property
    def source_format(self) -> SourceFormat:
        """What is known of the source's format."""
        return self.source.known_format(is_ordered=self.is_ordered)

    @property
    def is_ordered(self) -> bool:
        """Whether anything but the place of a record orders the changes of its key."""
        return bool(self.sequence)

    @property
    def source_spec(self) -> SourceSpec:
        """The source as its format takes it."""
        source = self.source
        return SourceSpec(
            self.name,
            source.path or pattern_of(self._dumps),
            source.first_day,
            source.settle,
            source.file_limits,
            source.row_op,
            source.file_order,
            source.is_snapshot,
            self.spec.as_written.columns,
        )

    @property
    def parse_options(self) -> ParseOptions:
        """What the parsers want to know beside the columns."""
        found = {name: column.encoding for name, column in self.columns.items()}
        encodings = {name: encoding for name, encoding in found.items() if encoding is not None}
        return replace(self.source.parse_options, encodings=encodings)

    @property
    def leaves_values_out(self) -> bool:
        """Whether a record may lack values that its row has: Debezium's may, and updates that keep them."""
        # a format that tells of emptied tables is one whose records leave values out
        by_rows = self.source.absent == "keep" or self.source.row_op.placeholders
        return self.source_format.truncates or by_rows

    @property
    def names_in_source(self) -> dict[str, str]:
        """What the source calls the columns for which the file says it."""
        found = {name: column.source_name for name, column in self.columns.items()}
        return {name: other for name, other in found.items() if other is not None}

    @property
    def declared_sequence(self) -> StructType:
        """What orders records of a key; without a declared sequence, the position does."""
        fields = _struct({name: self._sequence_type(name) for name in self.sequence})
        return fields if self.sequence else POSITION_TYPE

    @property
    def declared_columns(self) -> StructType:
        """The columns with their types."""
        return _struct({name: column.data_type for name, column in self.columns.items()})

    def _sequence_type(self, name: str) -> DataType:
        """A declared column hides the envelope's value of the same name."""
        if name in self.columns:
            return self.columns[name].data_type
        return StringType() if name == SOURCE else LongType()


class Versioned(Frozen):
    """A table that remembers which value a key had when."""

    history_retention: Duration
    """How far back, in event time, as-of reads go and late records may rewrite history; older ones are refused
    and counted as `expired`."""


class Table(Input):
    """A table of change data."""

    event_time: str | None = None
    """Column of type `timestamp` that says when a change happened: the clock of `tombstone_retention`, and what
    orders the versions of a key in a versioned table."""
    versioned: Versioned | None = None
    """Keeps the history of each key by event time, for joins with streams and as-of reads; see below."""
    tombstone_retention: Duration = Field(
        default=timedelta(days=30), json_schema_extra={"default": "30 days"}
    )
    """How long a deleted key is remembered, in event time where declared, else by the clock of the
    batches."""
    on_truncate: Literal["stop", "delete"] = "stop"
    """What Debezium's truncate event does: stop the batch, or delete every row. Only with format `debezium`."""
    reconcile: Source | None = None
    """Where snapshots of the table lie, with which `lakejoin reconcile` compares what came of the change data: a source
    of rows that have the columns by their declared names; see `docs/snapshots.md`."""

    @property
    def of_snapshots(self) -> "Table":
        """The table as its snapshots beside the change data are read: ordered by their place, values as one has them.

        Raises `ValueError` where it has none.
        """
        if self.reconcile is None:
            raise ValueError(f"{self.name}: declares no `reconcile`")
        columns = {name: column.plain for name, column in self.columns.items()}
        source = self.reconcile.model_copy(update={"mode": "snapshot", "every": timedelta()})
        return self.model_copy(update={"source": source, "columns": columns, "sequence": ()})

    @property
    def is_ordered(self) -> bool:
        """By a sequence, or by event time."""
        return bool(self.sequence) or self.versioned is not None

    @property
    def spec(self) -> TableSpec:
        """The table as the stages take it: the versions of a key are ordered by their time first."""
        sequence = self.declared_sequence
        if self.versioned is not None:
            sequence = StructType([StructField(TIME, TimestampType()), *sequence])
        return TableSpec(
            name=self._name,
            columns=self.declared_columns,
            key=self.key,
            sequence=sequence,
            event_time=self.event_time,
            history_retention=self.versioned.history_retention if self.versioned else None,
            max_future=self.max_future if self.versioned else None,
            written=self.names_in_source,
            where=self.asked,
        )


def _struct(types: Mapping[str, DataType]) -> StructType:
    return StructType([StructField(name, dtype) for name, dtype in types.items()])
