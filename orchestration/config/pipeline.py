"""Describes a whole pipeline as one frozen model.

Only `load` makes a `Pipeline`, for it has also checked what concerns several values at once
(`orchestration.config.checks`).
"""

import hashlib
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, TypedDict

from pydantic import Field, PrivateAttr

from lakejoin.orchestration.config.document import line_of
from lakejoin.orchestration.config.problems import KeyPath, Problem
from lakejoin.orchestration.config.schema.expect import Bound, Expect, InputExpect
from lakejoin.orchestration.config.schema.expression_types import Columns
from lakejoin.orchestration.config.schema.expressions import expression_type
from lakejoin.orchestration.config.schema.frozen import Frozen
from lakejoin.orchestration.config.schema.groups import columns_of_key
from lakejoin.orchestration.config.schema.joins import AnyJoin, Group, InJoins, Join, Star, StreamJoin
from lakejoin.orchestration.config.schema.model import Engine, Input, Maintenance, Spark, Table
from lakejoin.orchestration.config.schema.stream import Stream
from lakejoin.orchestration.config.schema.values import LakePath, Name
from lakejoin.orchestration.config.shape import shape_of_inputs
from lakejoin.orchestration.config.specs import Specs
from lakejoin.storage.lake.plan import Kind as BatchKind
from lakejoin.storage.sources.database.dumps import DUMPS
from lakejoin.transforms.model.group_spec import GroupSpec
from lakejoin.transforms.model.result_spec import ResultSpec
from lakejoin.transforms.model.specs import JoinSpec, StarSpec, StreamJoinSpec, TableSpec


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
    expect: Expect = Field(default=Expect(), json_schema_extra={"default": {}})
    """What figures are expected; see below. One that is not met is told by `check`, `status`, Dagster and Data Docs,
    and stops nothing."""
    tables: Annotated[dict[Name, Table], Field(min_length=1)]
    """Tables by name; see below. Tables, streams, joins and groups share one set of names."""
    streams: dict[Name, Stream] = Field(default={})
    """Streams by name; see below."""
    declared_joins: dict[Name, InJoins] = Field(default={}, alias="joins")
    """Joins by name: of a table with a table, or of a stream with a table; see below."""
    groups: dict[Name, Group] = Field(default={})
    """Groups by name: what rows of a table or a join have together; see below."""
    _joins: dict[str, AnyJoin] = PrivateAttr({})
    _specs: Specs = PrivateAttr()
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
        self._specs = Specs(self.tables, self.streams, self._joins)
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

    def expected_of(self, name: str) -> InputExpect:
        """What is expected of a table or stream: what it says, or else what is said of all."""
        own, of_all = self.inputs[name].expect, self.expect
        return InputExpect(
            quarantined=own.quarantined or of_all.quarantined,
            lag=own.lag or of_all.lag,
        )

    def dangling_bound(self, name: str, side: str) -> Bound | None:
        """What share of the foreign keys of a join to one right side may point nowhere; None for any."""
        join = self.joins[name]
        if not isinstance(join, Join | Star):
            return None
        own = join.max_dangling_of(side)
        return self.expect.dangling if own is None else Bound.at_most(own)

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
    def event_histories(self) -> dict[str, list[TableSpec]]:
        """The joins whose history goes by event time, each with its sides, all of them versioned tables."""
        return {
            name: [self.tables[side].spec for side in dict.fromkeys(join.sides)]
            for name, join in self.joins.items()
            if join.history_spec is not None and join.history_spec.by_event_time
        }

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
        return self._specs.group(name)

    def join_spec(self, name: str) -> JoinSpec | StarSpec:
        """A join of tables as the stages take it."""
        return self._specs.join(name)

    def stream_join_spec(self, name: str) -> StreamJoinSpec:
        """The join of a stream as the stages take it."""
        return self._specs.stream_join(name)

    def spec_of_join(self, name: str) -> ResultSpec:
        """A join of any kind as the stages take it."""
        return self._specs.of(name)

    def made_of(self, *names: str) -> list[str]:
        """Results, tables and streams with all that they are made of, each once."""
        found, waiting = list[str](), list(names)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.append(name)
                waiting += self.joins[name].sides if name in self.joins else ()
        return found

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
            **shape_of_inputs(self.tables, self.streams),
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
