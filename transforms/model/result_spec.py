"""Describes the result of a join, its columns and its key, whatever the sides are that it is made of."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pyspark.sql.types import DataType, StructField, StructType

from lakejoin.transforms.model.expressions import may_raise
from lakejoin.transforms.model.schemas import (
    HASH_TYPE,
    LEFT_HASH,
    LEFT_SEQUENCE,
    RIGHT_HASH,
    RIGHT_KEY,
    RIGHT_SEQUENCE,
)

if TYPE_CHECKING:
    from lakejoin.transforms.model.specs import JoinSpec

ResultKey = Literal["left", "combined"]


@dataclass(frozen=True)
class Selected:
    """A column of the result of a join."""

    name: str
    dtype: DataType
    sql: str
    """What it is, over the columns of `ResultSpec.pair_columns`."""
    column: str | None = None
    """The one of these that it is; None for an expression."""


@dataclass(frozen=True)
class History:
    """How the history of a result is kept."""

    marks_current: bool = False
    """Whether a column says which versions are the rows that the result has now."""
    by_event_time: bool = False
    """Whether it says what was true when, by the event times of versioned sides; else what each batch made."""


class ResultSpec:
    """What is known of every join: its left side, and what it makes of a left row and its right ones."""

    name: str
    left: str
    """Name of a table, or of another join."""
    left_columns: StructType
    """Columns that the join reads of a left row; the hash of its value is made of these."""
    left_key: tuple[str, ...]
    changelog: bool
    history: History | None
    """Of a result whose versions are kept."""
    left_sequence: StructType | None
    """Type of what orders the changes of the left side, where the history says it; None also of another join."""
    result_key: ResultKey
    """`combined`: the joined row is identified by right and left key; then `how` is inner."""
    select: tuple[Selected, ...] | None
    """Columns of the result, the key among them (KIP-213's ValueJoiner); None for all of all rows."""
    where: str | None
    """SQL condition over `pair_columns` that a joined row meets."""
    left_key_may_be_null: bool
    """Whether a part of the left key may be null, and is then a value like others: the left side are groups."""
    left_whole: bool
    """Whether the join reads every column of its left side, or that side is another join: `HASH` is their hash."""

    @property
    def parts(self) -> "tuple[JoinSpec, ...]":
        """The join of the left side with each of its right sides."""
        raise NotImplementedError

    @property
    def reads(self) -> set[str]:
        """The names of what it joins."""
        return {self.left, *[part.right for part in self.parts]}

    @property
    def foreign_key_texts(self) -> list[str]:
        """The SQL expressions of its foreign keys to all right sides."""
        return [text for part in self.parts for text in part.foreign_key]

    @property
    def needed(self) -> "tuple[JoinSpec, ...]":
        """Of several right sides those without whose row a left row has no joined row."""
        return ()

    @property
    def pair_columns(self) -> StructType:
        """What the join reads of its rows: the left columns, then those of each right side with its prefix."""
        rights = [
            StructField(part.prefix + f.name, f.dataType) for part in self.parts for f in part.right_columns
        ]
        return StructType([*self.left_columns, *rights])

    @property
    def columns(self) -> StructType:
        """Columns of the joined table."""
        if self.select is None:
            return self.pair_columns
        return StructType([StructField(entry.name, entry.dtype) for entry in self.select])

    @property
    def hashes(self) -> list[StructField]:
        """Internal columns of the joined table: the hashes of the rows that a joined row is made of."""
        names = [LEFT_HASH, *[part.of_side(RIGHT_HASH) for part in self.parts]]
        return [StructField(name, HASH_TYPE) for name in names]

    @property
    def internal_columns(self) -> list[StructField]:
        """All of them but the batch: beside each right hash the key of the right row, if the result lacks that."""
        left, *rights = self.hashes
        found = [left]
        for part, right in zip(self.parts, rights, strict=True):
            key = StructField(part.of_side(RIGHT_KEY), part.foreign_key_type)
            found += [right] if part.joined_right_key else [right, key]
        return found

    @property
    def sequences(self) -> list[StructField]:
        """What the history says of the rows that a version is made of: the sequence of each side that has one."""
        if self.history is None:
            return []
        found = [(LEFT_SEQUENCE, self.left_sequence)]
        found += [(part.of_side(RIGHT_SEQUENCE), part.right_sequence) for part in self.parts]
        return [StructField(name, dtype) for name, dtype in found if dtype is not None]

    @property
    def may_lack_rows(self) -> bool:
        """Whether a left row may have no joined row."""
        return self.where is not None or any(part.how == "inner" for part in self.parts)

    @property
    def computed_texts(self) -> list[str]:
        """SQL of the result over a row of `pair_columns`, and of its condition, as far as it may raise for a row."""
        selected = [entry.sql for entry in self.select or () if entry.column is None]
        return [sql for sql in (self.where, *selected) if sql is not None and may_raise(sql)]

    @property
    def key_may_be_null(self) -> bool:
        """Whether a part of the key of the joined table may be null, and is then a value like others."""
        return self.left_key_may_be_null

    def in_result(self, columns: Iterable[str]) -> tuple[str, ...] | None:
        """What the result calls some of `pair_columns`; None where it lacks one."""
        if self.select is None:
            return tuple(columns)
        names = {entry.column: entry.name for entry in reversed(self.select)}
        found = [names.get(column) for column in columns]
        return None if None in found else tuple(name for name in found if name is not None)

    @property
    def joined_left_key(self) -> tuple[str, ...]:
        """Columns of the joined table that hold the left key."""
        found = self.in_result(self.left_key)
        assert found is not None, "the configuration was checked for it"
        return found

    @property
    def joined_key(self) -> tuple[str, ...]:
        """Columns of the joined table that identify its rows."""
        return self.joined_left_key

    @property
    def joined_key_type(self) -> StructType:
        """Type of the joined table's key."""
        return StructType([self.columns[name] for name in self.joined_key])

    @property
    def primary_key_type(self) -> StructType:
        """Type of `primary_key`: the left key."""
        return StructType([self.left_columns[name] for name in self.left_key])
