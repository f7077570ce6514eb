"""Brings the two sides of a join into the form that its steps read: keys as structs, the rest as one value."""

from collections.abc import Sequence
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from lakejoin.transforms.model.expressions import computed
from lakejoin.transforms.model.hashing import value_hash
from lakejoin.transforms.model.result_spec import ResultSpec
from lakejoin.transforms.model.schemas import (
    BATCH,
    DELETED,
    FOREIGN_KEY,
    HASH,
    LEFT_HASH,
    POSITION,
    POSITION_TYPE,
    PRIMARY_KEY,
    RIGHT_HASH,
    RIGHT_KEY,
    SEQUENCE,
    key_struct,
    named,
)
from lakejoin.transforms.model.specs import JoinSpec


def foreign_key(join: JoinSpec) -> Column:
    """The foreign key of a left row: null if any of its parts is, or cannot be computed, and null refers to nothing."""
    parts = [
        computed(text, f.dataType) for text, f in zip(join.foreign_key, join.foreign_key_type, strict=True)
    ]
    key = F.struct(*[p.alias(n) for p, n in zip(parts, join.foreign_key_type.names, strict=True)])
    return key if join.null_refers else F.when(reduce(and_, [part.isNotNull() for part in parts]), key)


def left_hash(join: ResultSpec) -> Column:
    """Hash of what a join reads of a left row; null for a tombstone."""
    return _hash_of(join.left_columns, whole=join.left_whole)


def right_hash(join: JoinSpec) -> Column:
    """Hash of what a join reads of a right row; null for a tombstone."""
    return _hash_of(join.right_columns, whole=join.right_whole)


def _hash_of(columns: StructType, *, whole: bool) -> Column:
    return named(HASH) if whole else F.when(~named(DELETED), value_hash(columns))


def without_unread(
    rows: DataFrame, changes: DataFrame, before: DataFrame, key: tuple[str, ...], hashed: Column
) -> DataFrame:
    """Rows of a side without those keys whose changes leave all that a join reads of their row as it was.

    `changes`: rows of the side as the batch made them one after the other. `before`: its rows before the batch, of at
    least the changed keys. `hashed`: of what the join reads.
    """
    columns = [named(name) for name in key]
    was = before.where(~named(DELETED)).select(*columns, hashed.alias(_WAS))
    same = F.bool_and(F.col(_IS).eqNullSafe(F.col(_WAS)))
    met = changes.select(*columns, hashed.alias(_IS)).join(was, list(key))
    unread = met.groupBy(*columns).agg(same.alias(_SAME)).where(_SAME).select(*columns)
    return rows.join(unread, list(key), "left_anti")


def left_changes(changes: DataFrame, join: ResultSpec) -> DataFrame:
    """Changes of the left table as primary_key, position, hash and foreign keys; of a delete the latter are null."""
    return changes.select(*_change(join))


def inserted(rows: DataFrame, join: ResultSpec, *beside: str) -> DataFrame:
    """Left rows that the batch inserted: the columns of `left_changes`, value, and other columns `beside`."""
    return rows.select(*_change(join), _value(join.left_columns, join.left_sequence), *beside)


def _change(join: ResultSpec) -> list[Column]:
    return [
        key_struct(join.left_key).alias("primary_key"),
        named(POSITION),
        *_foreign_keys(join, ~named(DELETED)),
        left_hash(join).alias("hash"),
    ]


def _foreign_keys(join: ResultSpec, lives: Column) -> list[Column]:
    """The foreign key of a left row to each right side, by `JoinSpec.of_side`; null where the row does not live."""
    return [F.when(lives, foreign_key(part)).alias(part.of_side("foreign_key")) for part in join.parts]


def with_foreign_keys(rows: DataFrame, join: ResultSpec) -> DataFrame:
    """Give left rows their foreign keys.

    `rows`: primary_key, hash (null for a deleted row) and value. Returns the same under names with `left_` before them,
    but for the key, and the foreign keys as `left_changes` does.
    """
    # apart from the row's own columns, which the foreign keys are made of
    apart = {"primary_key": PRIMARY_KEY, "hash": LEFT_HASH, "value": _LEFT_VALUE}
    named_apart = rows.select(*[F.col(name).alias(other) for name, other in apart.items()], "value.*")
    return named_apart.select(
        F.col(PRIMARY_KEY).alias("primary_key"),
        F.col(LEFT_HASH).alias("left_hash"),
        F.col(_LEFT_VALUE).alias("left_value"),
        *_foreign_keys(join, F.col(LEFT_HASH).isNotNull()),
    )


def of_part(rows: DataFrame, part: JoinSpec, *names: str) -> DataFrame:
    """Rows that have something of each right side, with that of one side as a join with it alone calls it."""
    return rows.withColumns({name: F.col(part.of_side(name)) for name in names}) if part.side else rows


_LEFT_VALUE = "_lj_left_value"
_WAS, _IS, _SAME = "_lj_was", "_lj_is", "_lj_same"


def left_rows_schema(join: JoinSpec, rows: StructType) -> StructType:
    """Schema of `left_rows`: those of the left table that are not deleted and have a foreign key, and the key."""
    return StructType([StructField(FOREIGN_KEY, join.foreign_key_type), *rows])


def as_left_rows(rows: DataFrame, join: JoinSpec) -> DataFrame:
    """Rows of the left table as rows of `left_rows`."""
    key, columns = foreign_key(join).alias(FOREIGN_KEY), [named(name) for name in rows.columns]
    return rows.where(~named(DELETED)).select(key, *columns).where(F.col(FOREIGN_KEY).isNotNull())


def live_keys(rows: DataFrame, join: ResultSpec) -> DataFrame:
    """Left rows that are not deleted, as primary_key and the foreign keys."""
    return rows.where(~named(DELETED)).select(
        key_struct(join.left_key).alias("primary_key"), *_foreign_keys(join, F.lit(True))
    )


def of_result(rows: DataFrame, deleted: Column | None = None) -> DataFrame:
    """Rows of a result as those of a table: whether they are deleted, by default not, and no position.

    A batch emits a key once, which needs no order.
    """
    lives = F.lit(False) if deleted is None else deleted
    return rows.withColumns({DELETED: lives, POSITION: F.lit(None).cast(POSITION_TYPE)})


def left_valued(rows: DataFrame, join: ResultSpec) -> DataFrame:
    """Rows of the left side as primary_key, hash (null for a tombstone), position and value."""
    return valued(rows, join.left_key, join.left_columns, left_hash(join), join.left_sequence)


def right_valued(rows: DataFrame, join: JoinSpec, *beside: str) -> DataFrame:
    """Rows of the right side likewise, with other columns `beside`."""
    return valued(
        rows, join.right_key, join.right_columns, right_hash(join), join.right_sequence, beside=beside
    )


def valued(
    rows: DataFrame, key: tuple[str, ...], columns: StructType, hashed: Column | None = None,
    sequence: StructType | None = None, *, beside: Sequence[str] = (),
) -> DataFrame:  # fmt: skip
    """Rows of a side by its key. `hashed`: the hash of these columns, where it is not that of the whole row.

    `sequence`: its type, where that is asked for, too. `beside`: other columns that stay.
    """
    return rows.select(
        key_struct(key).alias("primary_key"),
        (named(HASH) if hashed is None else hashed).alias("hash"),
        named(POSITION).alias("position"),
        _value(columns, sequence),
        *beside,
    )


def _value(columns: StructType, sequence: StructType | None = None) -> Column:
    names = columns.names if sequence is None else [*columns.names, SEQUENCE]
    return F.struct(*[named(name) for name in names]).alias("value")


def beside(rows: DataFrame, side: str, *columns: str) -> DataFrame:
    """Columns of a side under names that are its own in a join: `{side}_key` (primary_key) and `{side}_{name}`."""
    return rows.select(
        F.col("primary_key").alias(f"{side}_key"), *[F.col(name).alias(f"{side}_{name}") for name in columns]
    )


def same_fields(one: Column, other: Column, names: Sequence[str]) -> Column:
    """Whether two keys are equal, by their fields."""
    # Spark keeps single numbers in a table of their own when it joins, and structs in a slower one
    return reduce(and_, [one[name] == other[name] for name in names])


def unknown(messages: DataFrame, column: str, known: DataFrame) -> DataFrame:
    """Keys that a column of messages names and `known` has no row of, as primary_key, each once."""
    named_keys = messages.select(F.col(column).alias("primary_key")).where(F.col("primary_key").isNotNull())
    return named_keys.distinct().join(known.select("primary_key"), "primary_key", "left_anti")


def spread(keys: DataFrame, column: str, names: tuple[str, ...]) -> DataFrame:
    """Keys from a struct column as columns of a table's own key names, each once."""
    distinct = keys.where(F.col(column).isNotNull()).select(f"{column}.*").distinct()
    return distinct.toDF(*names)


def left_under_rules(rows: DataFrame, join: JoinSpec, key: Column) -> DataFrame:
    """Left rows as the rules of a join read them: primary_key, foreign_key, hash, deleted."""
    return rows.select(
        key.alias("primary_key"),
        F.when(~named(DELETED), foreign_key(join)).alias("foreign_key"),
        left_hash(join).alias("hash"),
        named(DELETED).alias("deleted"),
    )


def right_under_rules(rows: DataFrame, join: JoinSpec) -> DataFrame:
    """Right rows as the rules read them: primary_key, hash, deleted."""
    return rows.select(
        key_struct(join.right_key).alias("primary_key"),
        right_hash(join).alias("hash"),
        named(DELETED).alias("deleted"),
    )


def joined_left_key(join: ResultSpec) -> Column:
    """The left key of joined rows."""
    return _key_in(join.joined_left_key, join.left_key)


def _key_in(columns: tuple[str, ...], names: tuple[str, ...]) -> Column:
    """A key from columns that have other names in the joined table."""
    pairs = zip(columns, names, strict=True)
    return F.struct(*[named(column).alias(name) for column, name in pairs])


def joined_right_key(join: JoinSpec) -> tuple[str, ...]:
    """The columns of joined rows that hold the right key."""
    return join.joined_right_key or (join.of_side(RIGHT_KEY),)


def joined_under_rules(
    rows: DataFrame, join: JoinSpec, key: Column, filtered: Column | None = None
) -> DataFrame:
    """Joined rows as the rules read them: primary_key, left_hash, right_key, right_hash, batch, filtered.

    `right_key` is null for none. `filtered`: which of the rows are pairs that the result lacks, though the right row of
    this side is there (`transforms.model.selection.left_out`).
    """
    names, right_hash = join.joined_right_key, named(join.of_side(RIGHT_HASH))
    right_key = named(join.of_side(RIGHT_KEY)) if names is None else _key_in(names, join.right_key)
    return rows.select(
        key.alias("primary_key"),
        named(LEFT_HASH).alias("left_hash"),
        F.when(right_hash.isNotNull(), right_key).alias("right_key"),
        right_hash.alias("right_hash"),
        named(BATCH).alias("batch"),
        (F.lit(False) if filtered is None else filtered).alias("filtered"),
    )
