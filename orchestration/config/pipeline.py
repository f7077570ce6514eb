"""Describes a whole pipeline as one frozen model, and translates it for the stages.

Only `load` makes a `Pipeline`, for it has also checked what concerns several values at once
(`orchestration.config.checks`).
"""

import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, TypedDict

from pydantic import Field, PrivateAttr
from pyspark.sql.types import StructType

from orchestration.config.document import line_of
from orchestration.config.problems import KeyPath, Problem
from orchestration.config.schema.column_types import type_text
from orchestration.config.schema.expression_types import Columns
from orchestration.config.schema.expressions import expression_type
from orchestration.config.schema.frozen import Frozen
from orchestration.config.schema.groups import as_group, columns_of_key
from orchestration.config.schema.joins import AnyJoin, Group, InJoins, Join, Star, StreamJoin
from orchestration.config.schema.model import Engine, Input, Maintenance, Spark, Table
from orchestration.config.schema.select import as_sql, star_with_result, with_result, with_selected
from orchestration.config.schema.stream import Stream
from orchestration.config.schema.values import LakePath, Name
from storage.lake.plan import Kind as BatchKind
from storage.sources.database.dumps import DUMPS
from storage.sources.files.path_patterns import has_day, has_hour
from transforms.model.group_spec import GroupSpec
from transforms.model.result_spec import ResultSpec
from transforms.model.specs import JoinSpec, StarSpec, StreamJoinSpec


class SessionArguments(TypedDict, total=False):
    """What the Spark session of a pipeline is started with (`storage.spark.session.start_session`)."""

    master: str
    conf: Mapping[str, str]
    places: tuple[str, ...]
    formats: tuple[str, ...]


class Pipeline(Frozen):
    """A configuration file."""

    name: Name
    """Name of the pipeline: a group of assets in Dagster."""
    lake: LakePath
    """Directory, relative to the configuration file, or URI (`s3a://`, `abfss://`, `gs://`, `hdfs://`) that
    holds every table."""
    spark: Spark = Spark()
    """The Spark session; see below."""
    engine: Engine = Field(
        default=Engine(), json_schema_extra={"default": {"resident": True, "idle": "30 minutes"}}
    )
    """The JVM that Spark runs in; see below."""
    maintenance: Maintenance = Field(
        default=Maintenance(),
        json_schema_extra={"default": {"when": "after_batch", "retention": "7 days"}},
    )
    """When the lake is tidied up, and what may go; see below."""
    tables: Annotated[dict[Name, Table], Field(min_length=1)]
    """Tables by name; see below. Tables, streams, joins and groups share one set of names."""
    streams: dict[Name, Stream] = Field(default={})
    """Streams by name; see below."""
    declared_joins: dict[Name, InJoins] = Field(default={}, alias="joins")
    """Joins by name: of a table with a table, or of a stream with a table; see below."""
    groups: dict[Name, Group] = Field(default={})
    """Groups by name: what rows of a table or a join have together; see below."""
    _joins: dict[str, AnyJoin] = PrivateAttr({})
    _path: Path = PrivateAttr(Path())
    _lines: Mapping[KeyPath, int] = PrivateAttr({})

    def model_post_init(self, context: Any) -> None:
        """Tell each part what it is called and where it was read."""
        self._path = (context or {}).get("path", self._path)
        self._lines = (context or {}).get("lines", self._lines)
        for name, read in self.inputs.items():
            read._name = name  # noqa: SLF001 - set once, before anyone sees the table
            read._dumps = f"{self.lake.rstrip('/')}/{DUMPS}/{name}"  # noqa: SLF001 - as above
        self._joins = _sides_first({**self.declared_joins, **self.groups})
        for name, join in self.joins.items():
            join._name = name  # noqa: SLF001 - as above

    @property
    def joins(self) -> dict[str, AnyJoin]:
        """Joins and groups. Whoever runs them in their order finds all sides done; ties stay as declared."""
        return self._joins

    @property
    def path(self) -> Path:
        """The configuration file, absolute."""
        return self._path

    @property
    def places(self) -> tuple[str, ...]:
        """The lake and the sources: what a session has to reach."""
        beside = [table.reconcile for table in self.tables.values() if table.reconcile is not None]
        sources = [*[read.source for read in self.inputs.values()], *beside]
        return (self.lake, *[source.place for source in sources])

    @property
    def formats(self) -> tuple[str, ...]:
        """The formats of the sources: what a session has to read."""
        return tuple(dict.fromkeys(read.source.format for read in self.inputs.values()))

    @property
    def session(self) -> SessionArguments:
        """What its Spark session is started with, but for how long its JVM stays."""
        return {
            "master": self.spark.master, "conf": self.spark.conf, "places": self.places, "formats": self.formats,
        }  # fmt: skip

    @property
    def inputs(self) -> dict[str, Input]:
        """Tables and streams: whatever reads change data."""
        return {**self.tables, **self.streams}

    def section_of(self, name: str) -> str:
        """Where the file declares what has a name."""
        names: dict[str, Collection[str]] = {
            "tables": self.tables, "streams": self.streams, "joins": self.declared_joins
        }  # fmt: skip
        return next((section for section, declared in names.items() if name in declared), "groups")

    def read_by(self, kind: BatchKind, name: str) -> Input:
        """A table or stream as a batch of a kind reads it."""
        return self.tables[name].of_snapshots if kind == "reconcile" else self.inputs[name]

    @property
    def snapshot_tables(self) -> tuple[str, ...]:
        """The tables whose sources are snapshots."""
        return tuple(name for name, table in self.tables.items() if table.source.is_snapshot)

    @property
    def joins_of_tables(self) -> dict[str, Join | Star]:
        """The joins that begin with a table, or with another join."""
        return {name: join for name, join in self.joins.items() if isinstance(join, Join | Star)}

    @property
    def kept_by_key(self) -> dict[str, Join | Star | Group]:
        """These, and groups: whatever keeps a table in which each key has one row."""
        return {name: join for name, join in self.joins.items() if not isinstance(join, StreamJoin)}

    @property
    def joins_of_streams(self) -> dict[str, StreamJoin]:
        """The joins that begin with a stream."""
        return {name: join for name, join in self.joins.items() if isinstance(join, StreamJoin)}

    @property
    def rebuildable(self) -> dict[str, AnyJoin]:
        """The joins that can be computed anew from the rows of their sides."""
        return {name: join for name, join in self.joins.items() if not join.not_rebuilt}

    def problem(self, path: KeyPath, message: str) -> Problem:
        """A mistake that only showed after the file was read, with the line it stands on."""
        return Problem(str(self._path), line_of(self._lines, path), path, message)

    def keyed_spec(self, name: str) -> JoinSpec | StarSpec | GroupSpec:
        """What keeps a table by key as the stages take it."""
        return self.group_spec(name) if name in self.groups else self.join_spec(name)

    def group_spec(self, name: str) -> GroupSpec:
        """Groups as the stages take them."""
        group = self.groups[name]
        return as_group(name, group, *self._side(group.of), of_join=group.of in self.joins)

    def join_spec(self, name: str) -> JoinSpec | StarSpec:
        """A join of tables as the stages take it: the rows and keys of its sides, its foreign keys as SQL."""
        join, of_join = self.joins[name], self.joins[name].left_side in self.joins
        if isinstance(join, Star):
            return star_with_result(self._star_spec(name, join), join.select, join.where, of_join=of_join)
        assert isinstance(join, Join)
        columns, key = self._side(join.left)
        right_columns, right_key = self._side(join.right)
        spec = JoinSpec(
            name=name,
            left=join.left,
            right=join.right,
            left_columns=columns,
            left_key=key,
            right_columns=right_columns,
            right_key=right_key,
            foreign_key=as_sql(join.foreign_key, columns.names),
            how=join.how,
            prefix=join.prefix,
            changelog=join.changelog,
            history=join.history_spec,
            resolution=join.resolution,
            result_key=join.result_key,
            left_key_may_be_null=self._may_be_null(join.left),
            left_sequence=self._sequence_in(join, join.left),
            right_sequence=self._sequence_in(join, join.right),
        )
        return with_result(spec, join.select, join.where, of_join=of_join)

    def _side(self, name: str) -> tuple[StructType, tuple[str, ...]]:
        """The columns of what a join reads, and its key."""
        if name in self.joins:
            first = self.keyed_spec(name)
            return first.columns, first.joined_key
        table = self.tables[name].spec
        return table.columns, table.key

    def _star_spec(self, name: str, join: Star) -> StarSpec:
        columns, key = self._side(join.left)
        rights = [
            JoinSpec(
                name=part,
                left=join.left,
                right=right.table,
                left_columns=columns,
                left_key=key,
                right_columns=self._side(right.table)[0],
                right_key=self._side(right.table)[1],
                foreign_key=as_sql(right.foreign_key, columns.names),
                how=right.how,
                prefix=right.prefix_of(side),
                resolution=join.resolution,
                side=side,
                left_sequence=self._sequence_in(join, join.left),
                right_sequence=self._sequence_in(join, right.table),
            )
            for part, (side, right) in zip(join.part_names, join.rights.items(), strict=True)
        ]
        return StarSpec(
            name, join.left, columns, key, tuple(rights), changelog=join.changelog,
            history=join.history_spec, left_sequence=self._sequence_in(join, join.left),
            left_key_may_be_null=self._may_be_null(join.left),
        )  # fmt: skip

    def _sequence_in(self, join: Join | Star, side: str) -> StructType | None:
        """Type of what orders the changes of a side, where the history of the join says it."""
        return self.tables[side].spec.sequence if join.history and side in self.tables else None

    def _may_be_null(self, name: str) -> bool:
        """Whether a part of the key of a left side may be null: those of groups may."""
        return name in self.joins and self.keyed_spec(name).key_may_be_null

    def stream_join_spec(self, name: str) -> StreamJoinSpec:
        """The join of a stream as the stages take it."""
        join = self.joins_of_streams[name]
        stream, table = self.streams[join.stream].spec, self.tables[join.table].spec
        spec = StreamJoinSpec(
            name=name,
            left=join.stream,
            right=join.table,
            left_columns=stream.columns,
            left_key=stream.key,
            right_columns=table.columns,
            right_key=table.key,
            foreign_key=as_sql(join.foreign_key, stream.columns.names),
            how=join.how,
            prefix=join.prefix,
            grace=join.grace,
            drops_late=join.late != "join",
            as_of=table.history_retention is not None,
        )
        return with_selected(spec, join.select, join.where)

    def spec_of_join(self, name: str) -> ResultSpec:
        """A join of any kind as the stages take it."""
        return _SPECS[type(self.joins[name])](self, name)

    def foreign_keys(self, name: str) -> list[tuple[JoinSpec, KeyPath, tuple[str, ...]]]:
        """The foreign keys of a join: of each right side the join with it, where the file says the key, and how.

        Of groups what their rows have in common, which leads to the group.
        """
        join, place = self.joins[name], (self.section_of(name), name)
        parts = self.spec_of_join(name).parts
        if isinstance(join, Group):
            texts = tuple(entry.text for entry in columns_of_key(join.by))
            return [(part, (*place, "by"), texts) for part in parts]
        if isinstance(join, Star):
            return [
                (part, (*place, "rights", part.side, "foreign_key"), join.rights[part.side].foreign_key)
                for part in parts
            ]
        return [(part, (*place, "foreign_key"), join.foreign_key) for part in parts]

    @property
    def unchecked_expressions(self) -> list[tuple[str, str]]:
        """Joins and expressions of their foreign keys whose type is still to be compared, once Spark has started."""
        found: list[tuple[str, str]] = []
        for name in self.joins:
            for spec, _, texts in self.foreign_keys(name):
                types: Columns = {field.name: field.dataType for field in spec.left_columns}
                pairs = zip(spec.foreign_key, texts, strict=True)
                found += [(name, sql) for sql, text in pairs if expression_type(text, types) is None]
        return found

    @property
    def shape(self) -> dict[str, Any]:
        """What shapes the state in the lake, as plain JSON: no paths, no Spark, no limits of a run."""
        return {
            "name": self.name,
            "tables": {name: _table_shape(table) for name, table in self.tables.items()},
            "streams": {name: _stream_shape(stream) for name, stream in self.streams.items()},
            "joins": {name: join.model_dump(mode="json") for name, join in self.declared_joins.items()},
        } | (
            {"groups": {name: group.model_dump(mode="json") for name, group in self.groups.items()}}
            if self.groups
            else {}
        )

    @property
    def fingerprint(self) -> str:
        """Hash of `shape`: equal for files that mean the same state, however they are written."""
        return hashlib.sha256(json.dumps(self.shape, sort_keys=True).encode()).hexdigest()


_SPECS: Mapping[type[AnyJoin], Callable[[Pipeline, str], ResultSpec]] = {
    Join: Pipeline.join_spec,
    Star: Pipeline.join_spec,
    StreamJoin: Pipeline.stream_join_spec,
    Group: Pipeline.group_spec,
}


def _sides_first(joins: Mapping[str, AnyJoin]) -> dict[str, AnyJoin]:
    ordered: dict[str, AnyJoin] = {}
    for name in joins:
        waiting = [name]
        while waiting:
            join = joins[waiting[-1]]
            # a cycle, which the checks refuse, ends here
            before = [s for s in join.sides if s in joins and s not in ordered and s not in waiting]
            if before:
                waiting.append(before[0])
            else:
                ordered[waiting.pop()] = join
    return ordered


def _input_shape(read: Input) -> dict[str, Any]:
    """Types in their canonical spelling, so that `long` for `bigint` is no change.

    Of a path only whether it has a date, which positions begin with: those without are before all that have one; and
    whether it has an hour, which follows. Of CSV and JSON what is no default and says where a record begins.
    """
    path, csv = read.source.path, read.source.dialect.shape
    source = {key: getattr(read.source, key) for key in ("format", "time", "timezone")}
    return {
        "columns": {name: type_text(column.data_type) for name, column in read.columns.items()},
        "source": source
        | {"path": "hour" if has_hour(path) else has_day(path)}
        | ({"csv": csv} if csv else {})
        | ({} if read.source.one_per_line else {"one_per_line": False}),
        "key": read.key,
        "sequence": read.sequence,
        "where": read.where,
    }


def _table_shape(table: Table) -> dict[str, Any]:
    return _input_shape(table) | {
        "event_time": table.event_time,
        "versioned": table.versioned is not None,
        "tombstone_retention": table.tombstone_retention.total_seconds(),
        "on_truncate": table.on_truncate,
    }


def _stream_shape(stream: Stream) -> dict[str, Any]:
    return _input_shape(stream) | {"event_time": stream.event_time}
