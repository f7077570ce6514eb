"""Holds the rows of one frame against the keys of another."""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


@dataclass(frozen=True)
class Keys:
    """Keys by which rows are looked up."""

    rows: DataFrame
    """The columns of the key, and no others."""
    few: bool
    """Whether they fit on every task: then what is held against them is not shuffled."""


@dataclass(frozen=True)
class KeyTotals:
    """What tells a set of keys, of which none stands twice."""

    count: int
    digest: int | None
    """The exclusive or of their hashes; None where there are none."""


def restrict(rows: DataFrame, keys: Keys, key: tuple[str, ...]) -> DataFrame:
    """The rows of these keys."""
    wanted = F.broadcast(keys.rows) if keys.few else keys.rows
    return rows.join(wanted, list(key), "left_semi")


def key_hash(key: Sequence[Column]) -> Column:
    """The hash of a key, by its columns: what `KeyTotals` are made of."""
    return F.xxhash64(*key)
