"""What is known of each primary key, in one row: the view that the rules read.

Every frame is read once and grouped by primary key, whatever the number of rules. Joined pairwise by each rule instead,
the frames of a first load took a sixth of its time, and planning the joins of a small batch half a second.

The columns of a join's view: `lives`, `foreign_key` and `left_hash` of the left row; of its rows in the joined table
how many there are (`joined`), `joined_left_hash`, `right_key` (null: no match), `joined_right_hash` and `batch`; of its
live subscriptions how many (`subscriptions`), `subscribed_key` and `subscribed_hash`; of the answer that was applied
last `answer_key`, `answer_hash` and `answer_cause`; `right_lives` and `right_hash` of the right row that the joined row
names, or else the foreign key. Of a table: `copies` of the key, `contradictions` among them, `hash`, `deleted`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

Kind = Literal["inner", "left", "table"]
"""What a rule is about: a join by its `how`, or a declared table."""

JOIN_FRAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "left_rows": ("primary_key", "foreign_key", "hash", "deleted"),
        "right_rows": ("primary_key", "hash", "deleted"),
        "subscriptions": ("foreign_key", "primary_key", "hash"),
        "joined": ("primary_key", "left_hash", "right_key", "right_hash", "batch"),
        "answers": ("primary_key", "foreign_key", "hash", "cause"),
    }
)
"""Frames of a join with their columns. `subscriptions` are live ones, `answers` the last applied one of each key."""

TABLE_FRAMES: Mapping[str, tuple[str, ...]] = MappingProxyType({"rows": ("primary_key", "hash", "deleted")})
"""The frame of a declared table: its current rows, tombstones included."""

_BY_PRIMARY_KEY: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "left_rows": {"lives": "NOT deleted", "foreign_key": "foreign_key", "left_hash": "hash"},
        "joined": {
            "joined": "1",
            "joined_left_hash": "left_hash",
            "right_key": "right_key",
            "joined_right_hash": "right_hash",
            "batch": "batch",
        },
        "subscriptions": {"subscriptions": "1", "subscribed_key": "foreign_key", "subscribed_hash": "hash"},
        "answers": {"answer_key": "foreign_key", "answer_hash": "hash", "answer_cause": "cause"},
    }
)
"""What the view takes from each frame."""
_GROUPED: Mapping[str, str] = MappingProxyType(
    {
        "joined": "count(joined)",
        "subscriptions": "count(subscriptions)",
        "lives": "coalesce(max(lives), false)",
    }
)
"""How rows of a key become one, where it is not by `max`: there is one, or the counts say that there are more."""

_TABLE = """\
SELECT primary_key, count(*) AS copies, sum(CASE WHEN deleted = (hash IS NOT NULL) THEN 1 ELSE 0 END) AS contradictions,
  max(hash) AS hash, max(deleted) AS deleted
FROM {rows} GROUP BY primary_key"""


def frames_for(kind: Kind) -> Mapping[str, tuple[str, ...]]:
    """Return the names of the frames that a kind's view reads, each with its columns."""
    return TABLE_FRAMES if kind == "table" else JOIN_FRAMES


def keys_sql(kind: Kind, hint: str = "") -> str:
    """Return the query that makes the view; it reads frames as `{name}`. `hint`: how Spark lays their union out."""
    if kind == "table":
        return _TABLE
    columns = [column for taken in _BY_PRIMARY_KEY.values() for column in taken]
    parts = "\n    UNION ALL\n".join(_part(frame, columns) for frame in _BY_PRIMARY_KEY)
    grouped = ",\n    ".join(f"{_GROUPED.get(column, f'max({column})')} AS {column}" for column in columns)
    return f"""\
SELECT k.*, r.primary_key IS NOT NULL AND NOT r.deleted AS right_lives, r.hash AS right_hash
FROM (
  SELECT primary_key,
    {grouped}
  FROM (SELECT {hint} * FROM (
{parts}
  ) parts) rows_of_keys
  GROUP BY primary_key
) k LEFT JOIN {{right_rows}} r ON r.primary_key = coalesce(k.right_key, k.foreign_key)"""


def _part(frame: str, columns: list[str]) -> str:
    taken = _BY_PRIMARY_KEY[frame]
    values = ", ".join(f"{taken.get(column, 'NULL')} AS {column}" for column in columns)
    return f"    SELECT primary_key, {values} FROM {{{frame}}}"
