"""The configuration as a whole: one frozen model, and what it means for the stages.

A `Pipeline` comes out of `load` only, which has also checked what concerns several values at once
(`table_checks`, `join_checks`).
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PrivateAttr, field_validator
from pyspark.sql.types import DataType, StructType

from orchestration.config.column_types import parse_type, type_text
from orchestration.config.document import line_of
from orchestration.config.expression_types import Columns
from orchestration.config.expressions import expression_type
from orchestration.config.model import Frozen, Join, Maintenance, Spark, Table
from orchestration.config.problems import KeyPath, Problem
from orchestration.config.values import LakePath, Name
from transforms.schemas import JoinSpec, quoted


@dataclass(frozen=True)
class UncheckedExpression:
    """A foreign-key expression whose type only Spark can tell."""

    join: str
    index: int
    """Position in the foreign key, from 0."""
    sql: str
    columns: StructType
    """The left row that it is evaluated on."""
    expected: DataType
    """Type of the right key's column."""


class Pipeline(Frozen):
    """A configuration file."""

    name: Name
    """Name of the pipeline: a group of assets in Dagster."""
    lake: LakePath
    """Directory, relative to the configuration file, or URI (`s3a://`, `abfss://`, `gs://`, `hdfs://`) that
    holds every table."""
    spark: Spark = Spark()
    """The Spark session; see below."""
    maintenance: Maintenance = Field(
        default=Maintenance(),
        json_schema_extra={"default": {"when": "after_batch", "retention": "7 days"}},
    )
    """When the lake is tidied up, and what may go; see below."""
    tables: Annotated[dict[Name, Table], Field(min_length=1)]
    """Tables by name; see below. Tables and joins share one set of names."""
    joins: dict[Name, Join] = Field(default={})
    """Foreign-key joins by name; see below."""
    _path: Path = PrivateAttr(Path())
    _lines: Mapping[KeyPath, int] = PrivateAttr({})

    @field_validator("joins")
    @classmethod
    def _left_sides_first(cls, joins: dict[str, Join]) -> dict[str, Join]:
        """Whoever runs the joins in their order finds a join's left side done; ties stay as declared."""
        ordered: dict[str, Join] = {}
        for name in joins:
            chain, step = [], name
            while step in joins and step not in ordered and step not in chain:
                chain.append(step)
                step = joins[step].left
            ordered |= {link: joins[link] for link in reversed(chain)}
        return ordered

    def model_post_init(self, context: Any) -> None:
        """Tell each part what it is called and where it was read."""
        self._path = (context or {}).get("path", self._path)
        self._lines = (context or {}).get("lines", self._lines)
        for name, table in self.tables.items():
            table._name = name  # noqa: SLF001 - set once, before anyone sees the table
        for name, join in self.joins.items():
            join._name = name  # noqa: SLF001 - as above

    @property
    def path(self) -> Path:
        """The configuration file, absolute."""
        return self._path

    @property
    def places(self) -> tuple[str, ...]:
        """The lake and the sources: what a session has to reach."""
        return (self.lake, *[table.source.path for table in self.tables.values()])

    def problem(self, path: KeyPath, message: str) -> Problem:
        """A mistake that only showed after the file was read, with the line it stands on."""
        return Problem(str(self._path), line_of(self._lines, path), path, message)

    def join_spec(self, name: str) -> JoinSpec:
        """The join as the stages take it: the rows and keys of its two sides, its foreign key as SQL."""
        join = self.joins[name]
        right = self.tables[join.right].spec
        if join.left in self.joins:
            first = self.join_spec(join.left)
            left_columns, left_key = first.columns, first.left_key
        else:
            table = self.tables[join.left].spec
            left_columns, left_key = table.columns, table.key
        names = set(left_columns.names)
        return JoinSpec(
            name=name,
            left=join.left,
            right=join.right,
            left_columns=left_columns,
            left_key=left_key,
            right_columns=right.columns,
            right_key=right.key,
            foreign_key=tuple(quoted(text) if text in names else text for text in join.foreign_key),
            how=join.how,
            prefix=join.prefix,
            changelog=join.changelog,
        )

    @property
    def unchecked_expressions(self) -> tuple[UncheckedExpression, ...]:
        """Foreign-key expressions whose type is still to be compared, once Spark has started."""
        found = []
        for name in self.joins:
            spec = self.join_spec(name)
            types: Columns = {field.name: field.dataType for field in spec.left_columns}
            pairs = zip(spec.foreign_key, self.joins[name].foreign_key, spec.foreign_key_type, strict=True)
            found += [
                UncheckedExpression(name, index, sql, spec.left_columns, field.dataType)
                for index, (sql, text, field) in enumerate(pairs)
                if expression_type(text, types) is None
            ]
        return tuple(found)

    @property
    def shape(self) -> dict[str, Any]:
        """What shapes the state in the lake, as plain JSON: no paths, no Spark, no limits of a run."""
        return {
            "name": self.name,
            "tables": {name: _table_shape(table) for name, table in self.tables.items()},
            "joins": {name: join.model_dump(mode="json") for name, join in self.joins.items()},
        }

    @property
    def fingerprint(self) -> str:
        """Hash of `shape`: equal for files that mean the same state, however they are written."""
        return hashlib.sha256(json.dumps(self.shape, sort_keys=True).encode()).hexdigest()


def _table_shape(table: Table) -> dict[str, Any]:
    """Types in their canonical spelling, so that `long` for `bigint` is no change."""
    return {
        "columns": {name: type_text(parse_type(text)) for name, text in table.columns.items()},
        "source": {key: getattr(table.source, key) for key in ("format", "time", "timezone")},
        "key": table.key,
        "sequence": table.sequence,
        "event_time": table.event_time,
        "tombstone_retention": table.tombstone_retention.total_seconds(),
        "on_truncate": table.on_truncate,
    }
