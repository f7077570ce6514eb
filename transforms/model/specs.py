"""Describes declared tables and joins, as far as the transforms need to know them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Literal

from pyspark.sql.types import StructField, StructType

from lakejoin.transforms.model.expressions import RowExpression
from lakejoin.transforms.model.result_spec import History, ResultKey, ResultSpec, Selected

How = Literal["inner", "left"]
ResolvedBy = Literal["hash", "highwater"]


@dataclass(frozen=True)
class TableSpec:
    """A declared table of change data."""

    name: str
    columns: StructType
    """Declared columns, in declared order, all nullable."""
    key: tuple[str, ...]
    sequence: StructType
    """Fields that order the changes of one key; the position's own fields where none are declared."""
    event_time: str | None = None
    """Column that holds the event time."""
    history_retention: timedelta | None = None
    """How far back the history of a versioned table goes; then the first field of `sequence` is `TIME`."""
    max_future: timedelta | None = None
    """How far ahead a record's time may be; None where time moves nothing."""
    written: Mapping[str, str] = field(default_factory=dict)
    """What the source calls the columns for which that is declared."""
    where: RowExpression | None = None
    """What a row of the table must meet; of a stream it is asked elsewhere."""
    append_only: bool = False
    """Whether each record is an event of its own, as in a stream, and not a state of its key."""

    def name_in_source(self, column: str) -> str:
        """What the source calls a column."""
        return self.written.get(column, column)

    @property
    def as_written(self) -> "TableSpec":
        """The table with its columns called as the source calls them."""
        if not self.written:
            return self
        name = self.name_in_source
        own = set(self.columns.names)
        return replace(
            self,
            columns=_renamed(self.columns, name),
            key=tuple(map(name, self.key)),
            sequence=_renamed(self.sequence, lambda field: name(field) if field in own else field),
            event_time=self.event_time and name(self.event_time),
            written={other: column for column, other in self.written.items()},
        )

    @property
    def as_read(self) -> "TableSpec":
        """The table as its records are parsed: ordered by what they carry themselves."""
        if self.history_retention is None:
            return self
        return replace(self, sequence=StructType(self.sequence.fields[1:]), history_retention=None)


def _renamed(fields: StructType, name: Callable[[str], str]) -> StructType:
    return StructType([StructField(name(field.name), field.dataType) for field in fields])


@dataclass(frozen=True)
class JoinSpec(ResultSpec):
    """A declared foreign-key join, with the rows of its two sides resolved to columns."""

    name: str
    left: str
    """Name of a table, or of another join."""
    right: str
    """Name of a table."""
    left_columns: StructType
    """Columns that the join reads of a left row; the hash of its value is made of these."""
    left_key: tuple[str, ...]
    right_columns: StructType
    """Columns that it reads of a right row, likewise."""
    right_key: tuple[str, ...]
    foreign_key: tuple[str, ...]
    """SQL expressions over the left row, one for each column of the right key."""
    how: How
    prefix: str = "right_"
    changelog: bool = False
    history: History | None = None
    left_sequence: StructType | None = None
    right_sequence: StructType | None = None
    """Type of what orders the changes of the right side, where the history says it."""
    resolution: ResolvedBy = "hash"
    """How an answer that comes too late is recognised: by the hash of the left value, or the mark of its change."""
    result_key: ResultKey = "left"
    """`combined`: the joined row is identified by right and left key; then `how` is inner."""
    select: tuple[Selected, ...] | None = None
    """Columns of the result, the key among them (KIP-213's ValueJoiner); None for all of both rows."""
    where: str | None = None
    """SQL condition over `pair_columns` that a joined row meets."""
    left_whole: bool = True
    """Whether the join reads every column of its left side, or that side is another join: `HASH` is their hash."""
    right_whole: bool = True
    """Whether it reads every column of its right side."""
    left_key_may_be_null: bool = False
    null_refers: bool = False
    """Whether a foreign key of which a part is null refers to a row, as to a group; in a join it refers to none."""
    side: str = ""
    """What a star calls the right side, of which this is the join with its left side; else empty."""

    @property
    def parts(self) -> "tuple[JoinSpec, ...]":
        """Itself."""
        return (self,)

    def of_side(self, name: str) -> str:
        """What something that each right side has is called beside those of the other sides of a star."""
        return f"{name}_{self.side}" if self.side else name

    @property
    def joined_right_key(self) -> tuple[str, ...] | None:
        """Columns of the joined table that hold the right key; None where it lacks one of them."""
        return self.in_result(self.prefix + name for name in self.right_key)

    @property
    def joined_key(self) -> tuple[str, ...]:
        """Columns of the joined table that identify its rows: the left key, after the right one if it is combined."""
        right = () if self.result_key == "left" else self.joined_right_key
        assert right is not None, "the configuration was checked for it"
        return (*right, *self.joined_left_key)

    @property
    def foreign_key_type(self) -> StructType:
        """Type of `foreign_key`: the right key."""
        return StructType([self.right_columns[name] for name in self.right_key])


@dataclass(frozen=True)
class StarSpec(ResultSpec):
    """A declared join of a left side with several right ones, each by a foreign key of its own."""

    name: str
    left: str
    left_columns: StructType
    left_key: tuple[str, ...]
    rights: tuple[JoinSpec, ...]
    """The join with each right side, as if there were no other, but for what is selected; no row is left out here."""
    changelog: bool = False
    history: History | None = None
    left_sequence: StructType | None = None
    select: tuple[Selected, ...] | None = None
    where: str | None = None
    left_whole: bool = True
    left_key_may_be_null: bool = False
    result_key: ResultKey = "left"

    @property
    def parts(self) -> tuple[JoinSpec, ...]:
        """The join of the left side with each of its right sides."""
        return self.rights

    @property
    def needed(self) -> tuple[JoinSpec, ...]:
        """Those of the right sides without whose row a left row has no joined row."""
        return tuple(part for part in self.rights if part.how == "inner")


@dataclass(frozen=True)
class StreamJoinSpec(JoinSpec):
    """A declared join of a stream (its left side) with a table: `left_key` identifies a record of the stream."""

    grace: timedelta | None = None
    """How long a record waits, by the stream's time; None: it is joined in its batch."""
    drops_late: bool = True
    """Whether a record that comes after its grace period is dropped, or else joined at once."""
    as_of: bool = False
    """Whether the table is versioned, and so read as of a record's time."""
