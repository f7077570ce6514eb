"""Restricts the rows of one frame to the keys of another."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakejoin.transforms.model.schemas import named

_SOUGHT = "_lj_sought_"


@dataclass(frozen=True)
class Keys:
    """Keys by which rows are looked up."""

    rows: DataFrame
    """The columns of the key, and no others."""
    few: bool
    """Whether every task can hold them all: then a join with them needs no shuffle."""
    most: int | None = None
    """At most so many, where that is known."""
    null_matches: bool = False
    """Whether a null in a key is a value like others, as in that of a group; else it is equal to none."""


@dataclass(frozen=True)
class KeyTotals:
    """Totals that identify a set of keys, none of which occurs twice."""

    count: int
    digest: int | None
    """The exclusive or of their hashes; None where there are none."""


def restrict(rows: DataFrame, keys: Keys, key: tuple[str, ...]) -> DataFrame:
    """The rows of these keys."""
    return _met(rows, keys, key, "left_semi")


def without(rows: DataFrame, keys: Keys, key: tuple[str, ...]) -> DataFrame:
    """The rows of all other keys."""
    return _met(rows, keys, key, "left_anti")


def _met(
    rows: DataFrame, keys: Keys, key: tuple[str, ...], how: Literal["left_semi", "left_anti"]
) -> DataFrame:
    wanted = F.broadcast(keys.rows) if keys.few else keys.rows
    if not keys.null_matches:
        return rows.join(wanted, list(key), how)
    sought = wanted.select(*[named(name).alias(f"{_SOUGHT}{number}") for number, name in enumerate(key)])
    same = [named(name).eqNullSafe(F.col(f"{_SOUGHT}{number}")) for number, name in enumerate(key)]
    return rows.join(sought, same, how)


def key_hash(key: Sequence[Column]) -> Column:
    """The hash of a key, by its columns: what `KeyTotals` are made of."""
    return F.xxhash64(*key)
