"""Says how a row tells what happened to it: by which of its columns, and by which values of that.

The presets are what widely used tools write. (Debezium: "New Record State Extraction"; AWS DMS: "Using Amazon S3 as a
target"; Maxwell: "Data format"; Canal: "FlatMessage"; TiCDC: "Canal-JSON Protocol"; Oracle GoldenGate: "The JSON
Formatter"; Airbyte: "Change Data Capture"; Fivetran: "System columns"; Google Datastream: "Events and streams".)
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Literal

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from lakejoin.transforms.model.ignored_records import IgnoredKind

RowKind = Literal["upsert", "delete"]
Preset = Literal[
    "debezium-unwrapped", "dms", "maxwell", "canal", "goldengate", "airbyte", "fivetran", "datastream"
]
Path = tuple[str, ...]
"""Names of members, each within the one before it."""


@dataclass(frozen=True)
class RowOp:
    """How a row tells what happened to it."""

    column: str = "op"
    """The column that says it; in JSON a path from the record down (`parts_of`)."""
    upsert: tuple[str, ...] = ("c", "r", "u")
    delete: tuple[str, ...] = ("d",)
    ignored: tuple[tuple[str, IgnoredKind], ...] = ()
    """Values of records that are no rows, and what those are."""
    insert: tuple[str, ...] = ("c", "r")
    """Which of `upsert` bring whole rows: what they lack is null."""
    default: RowKind | None = None
    """What a row does in which the column is missing, null or empty."""
    other: RowKind | None = None
    """What a row does in which the column has any other value."""
    flag: str | None = None
    """A column that is true in a delete, whatever `column` says."""
    row: str | None = None
    """The member that holds the row; None where the record is the row."""
    old: str | None = None
    """The member that holds the row before the change, or what has changed of it."""
    lists: bool = False
    """These two are lists, with a row for each that a statement changed."""
    origin: tuple[str, ...] = ()
    """The members that say of which table of the database a record is: its schema or database, and its name."""
    loads: bool = False
    """Rows without the column are of a full load, in files whose names may come behind those of its changes."""
    wrapped: bool = False
    """The record may be the `payload` beside its `schema`."""
    placeholders: bool = False
    """Debezium's stand-in may be in the place of a value that did not change (TOAST)."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that say it."""
        return (self.column,) if self.flag is None else (self.column, self.flag)

    @property
    def members(self) -> tuple[str, ...]:
        """The members that hold rows."""
        return tuple(name for name in (self.row, self.old) if name is not None)

    @property
    def expected(self) -> str:
        """The values that are known, as a part of a sentence."""
        listed = [*dict.fromkeys((*self.upsert, *self.delete, *dict(self.ignored)))]
        return " or ".join([", ".join(listed[:-1]), *listed[-1:]] if len(listed) > 1 else listed)

    def kind(self, written: Column, flag: Column | None = None) -> Column:
        """What a row does: upsert, delete, ignored; null where nobody knows. `written`: the text of the column."""
        is_empty = written.isNull() | (written == "")
        found = (
            F.when(written.isin(*self.upsert), "upsert")
            .when(written.isin(*self.delete), "delete")
            .when(written.isin(*dict(self.ignored)), "ignored")
            .when(is_empty, F.lit(self.default))
            .when(~is_empty, F.lit(self.other))
        )
        return (
            found if flag is None else F.when(F.lower(flag).isin("true", "t", "1"), "delete").otherwise(found)
        )

    def ignored_as(self, written: Column) -> Column:
        """What a record is that is no row; null for one that is."""
        nothing = F.lit(None).cast("string")
        return reduce(
            lambda found, value: F.when(written == value[0], value[1]).otherwise(found), self.ignored, nothing
        )

    def row_in(self, record: Column) -> Column:
        """The row that a record holds, both as JSON."""
        return record if self.row is None else F.get_json_object(record, f"$.{self.row}")

    def is_update(self, written: Column) -> Column:
        """Whether an upsert may bring a part of its row."""
        return ~F.coalesce(written.isin(*self.insert), F.lit(False)) & (F.coalesce(written, F.lit("")) != "")


DEFAULT_OP = RowOp()
OF_SNAPSHOTS = RowOp("_lj_op", (), (), insert=(), default="upsert", other="upsert")
"""Each row is there, whatever its columns say; no source has a column of this name."""
PRESETS: dict[Preset, RowOp] = {
    "debezium-unwrapped": RowOp("__op", default="upsert", flag="__deleted", wrapped=True, placeholders=True),
    "dms": RowOp("Op", ("I", "U"), ("D",), insert=("I",), default="upsert", loads=True),
    "maxwell": RowOp(
        "type", ("insert", "update", "bootstrap-insert"), ("delete",),
        (("bootstrap-start", "other"), ("bootstrap-complete", "other"), ("table-create", "schema_change"),
         ("table-alter", "schema_change"), ("table-drop", "schema_change"), ("database-create", "schema_change"),
         ("database-alter", "schema_change"), ("database-drop", "schema_change"), ("heartbeat", "heartbeat")),
        insert=("insert", "bootstrap-insert"), row="data", old="old",
        origin=("database", "table"),
    ),
    # TRUNCATE is none of these: what it emptied would stay here
    "canal": RowOp(
        "type", ("INSERT", "UPDATE"), ("DELETE",),
        (("CREATE", "schema_change"), ("ALTER", "schema_change"), ("ERASE", "schema_change"), ("QUERY", "other"),
         ("RENAME", "schema_change"), ("CINDEX", "schema_change"), ("DINDEX", "schema_change"),
         ("TIDB_WATERMARK", "heartbeat")),
        insert=("INSERT",), row="data", old="old", lists=True, origin=("database", "table"),
    ),
    "goldengate": RowOp("op_type", ("I", "U"), ("D",), insert=("I",), row="after", old="before", origin=("table",)),
    "airbyte": RowOp("_ab_cdc_deleted_at", (), (), insert=(), default="upsert", other="delete"),
    "fivetran": RowOp("_fivetran_deleted", ("false",), ("true",), insert=("false",), default="upsert"),
    "datastream": RowOp(
        "source_metadata.change_type", ("INSERT", "UPDATE", "UPDATE-INSERT", "MERGE"), ("DELETE", "UPDATE-DELETE"),
        insert=("INSERT",), row="payload", origin=("source_metadata.schema", "source_metadata.table"),
    ),
}  # fmt: skip


def parts_of(text: str) -> tuple[bool, Path]:
    """The names on a path, and whether it begins at the record (`$.`) or at its row; `` `a.b` `` is one name."""
    from_record = text.startswith("$.")
    quoted, names = False, [""]
    for sign in text.removeprefix("$."):
        if sign == "`":
            quoted = not quoted
        elif sign == "." and not quoted:
            names.append("")
        else:
            names[-1] += sign
    return from_record, tuple(names)


def place_of(column: str, written: str | None) -> tuple[bool, Path]:
    """Where a column is: whether beside the row, and its path there. `written`: its path, if one is declared."""
    return (False, (column,)) if written is None else parts_of(written)


def path_from_record(place: tuple[bool, Path], row: str | None) -> Path:
    """The path to a place from the record down. `row`: the member that holds the row."""
    is_beside, path = place
    return path if is_beside or row is None else (row, *path)


def tree_of(paths: Iterable[Path]) -> StructType:
    """Type of a record with a text at the end of each path. Raises `ValueError` where one goes on behind another."""
    within: dict[str, list[Path]] = {}
    for path in dict.fromkeys(paths):
        within.setdefault(path[0], []).append(path[1:])
    for name, rest in within.items():
        if () in rest and len(rest) > 1:
            raise ValueError(f"{name!r} is read as text, and {'.'.join(map(str, max(rest)))!r} within it")
    return StructType(
        [StructField(name, StringType() if rest == [()] else tree_of(rest)) for name, rest in within.items()]
    )


def is_of(name: Column, whole: Column, tables: Sequence[str]) -> Column:
    """Whether a record is of one of these tables, which may hold `*` for any signs; one that names none is."""
    found = [
        (whole if "." in table else name).rlike("^" + ".*".join(map(re.escape, table.split("*"))) + "$")
        for table in tables
    ]
    return name.isNull() | reduce(or_, found)


def at(record: Column, path: Path) -> Column:
    """The member of a record at the end of a path."""
    for name in path:
        record = record[name]
    return record
