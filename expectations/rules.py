"""The rules that a joined table and its state keep, each written once as SQL that selects the offending rows.

The gate before a commit and the Great Expectations suites run these very texts, by way of
`expectations.gate`. They read frames by name: five for a join, one for a table. The frames hold all rows,
or only those of the keys that a batch touched. Restricted frames must be closed, or a row that was merely
left out would look missing:

- `left_rows` holds the row of every primary key in `joined`, `subscriptions` and `responses`;
- `right_rows` holds the row of every foreign key in `left_rows` and of every right key in `joined`;
- `subscriptions` holds all live ones of every primary key in `left_rows`, `joined` its rows after the
  batch. In a batch the emissions are enough: a touched left row without one has no right row and nothing to
  show.

A row that is not there although the frames are closed was purged, or never came: it is as gone as a
tombstone. Keys are structs without null fields; hashes may be null, so they are compared with `IS [NOT]
DISTINCT FROM`. What must be absent is looked for by a left join: Spark would push `NOT EXISTS` below the
`coalesce` by which the gate saves its jobs. The join and its subscriptions are those of KIP-213.
"""

from collections.abc import Mapping
from dataclasses import dataclass
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
        "responses": ("primary_key", "foreign_key", "hash", "cause", "resolution", "batch"),
    }
)
"""Frames of a join with their columns. `subscriptions` are live ones; a null `right_key` means no match."""

TABLE_FRAMES: Mapping[str, tuple[str, ...]] = MappingProxyType({"rows": ("primary_key", "hash", "deleted")})
"""The frame of a declared table: its current rows, tombstones included."""


@dataclass(frozen=True)
class Rule:
    """An invariant."""

    name: str
    """Says what holds; unique among the rules of a kind. `--accept` takes it."""
    statement: str
    """The same in one sentence for people."""
    kinds: tuple[Kind, ...]
    """What it applies to."""
    sql: str
    """Selects the offending rows, reading frames as `{name}`."""


_JOINS: tuple[Kind, ...] = ("inner", "left")

RULES: tuple[Rule, ...] = (
    Rule(
        name="one_row_per_key",
        statement="The joined table has one row for each key.",
        kinds=_JOINS,
        sql="""
SELECT primary_key, count(*) AS copies
FROM {joined}
GROUP BY primary_key
HAVING count(*) > 1""",
    ),
    Rule(
        name="left_row_exists",
        statement="No joined row outlives its left row.",
        kinds=_JOINS,
        sql="""
SELECT j.primary_key, j.batch
FROM {joined} j LEFT JOIN {left_rows} l ON l.primary_key = j.primary_key AND NOT l.deleted
WHERE l.primary_key IS NULL""",
    ),
    Rule(
        name="left_row_current",
        statement="A joined row is made of the current left row, not of an older one.",
        kinds=_JOINS,
        sql="""
SELECT j.primary_key, j.left_hash AS found, l.hash AS expected, j.batch
FROM {joined} j JOIN {left_rows} l ON l.primary_key = j.primary_key
WHERE NOT l.deleted AND j.left_hash IS DISTINCT FROM l.hash""",
    ),
    Rule(
        name="right_row_exists",
        statement="No row of an inner join outlives its right row.",
        kinds=("inner",),
        # A null right key equals nothing, so a row without a match is found as well.
        sql="""
SELECT j.primary_key, j.right_key, j.batch
FROM {joined} j LEFT JOIN {right_rows} r ON r.primary_key = j.right_key AND NOT r.deleted
WHERE r.primary_key IS NULL""",
    ),
    Rule(
        name="right_columns_null",
        statement="A row of a left join has no right columns once its right row is gone.",
        kinds=("left",),
        sql="""
SELECT j.primary_key, j.right_key, j.right_hash, j.batch
FROM {joined} j LEFT JOIN {right_rows} r ON r.primary_key = j.right_key AND NOT r.deleted
WHERE r.primary_key IS NULL AND (j.right_key IS NOT NULL OR j.right_hash IS NOT NULL)""",
    ),
    Rule(
        name="right_row_current",
        statement="A joined row is made of the current right row, not of an older one.",
        kinds=_JOINS,
        # Looks at the right row it was joined with; whether that is the right one, `right_row_matches` says.
        sql="""
SELECT j.primary_key, j.right_key, j.right_hash AS found, r.hash AS expected, j.batch
FROM {joined} j JOIN {right_rows} r ON r.primary_key = j.right_key
WHERE NOT r.deleted AND j.right_hash IS DISTINCT FROM r.hash""",
    ),
    Rule(
        name="right_row_matches",
        statement="A joined row's right row is the one that the foreign key of its left row names.",
        kinds=_JOINS,
        # An older left row may have named another right row: that is for `left_row_current` to say.
        sql="""
SELECT j.primary_key, j.right_key AS found, l.foreign_key AS expected, j.batch
FROM {joined} j JOIN {left_rows} l ON l.primary_key = j.primary_key
WHERE NOT l.deleted AND j.left_hash IS NOT DISTINCT FROM l.hash
  AND j.right_key IS NOT NULL AND j.right_key IS DISTINCT FROM l.foreign_key""",
    ),
    Rule(
        name="one_subscription",
        statement="Each left row with a foreign key has exactly one live subscription.",
        kinds=_JOINS,
        sql="""
SELECT l.primary_key, l.foreign_key, count(s.primary_key) AS subscriptions
FROM {left_rows} l LEFT JOIN {subscriptions} s ON s.primary_key = l.primary_key
WHERE NOT l.deleted AND l.foreign_key IS NOT NULL
GROUP BY l.primary_key, l.foreign_key
HAVING count(s.primary_key) <> 1""",
    ),
    Rule(
        name="no_other_subscription",
        statement="A left row that is gone or has no foreign key has no live subscription.",
        kinds=_JOINS,
        # On restricted frames this holds also for subscriptions that were looked up by a changed right key:
        # each was answered, so the left row that it names is at hand.
        sql="""
SELECT s.primary_key, s.foreign_key, s.hash
FROM {subscriptions} s LEFT JOIN {left_rows} l
  ON l.primary_key = s.primary_key AND NOT l.deleted AND l.foreign_key IS NOT NULL
WHERE l.primary_key IS NULL""",
    ),
    Rule(
        name="subscription_agrees",
        statement="A live subscription has the foreign key and the hash of its current left row.",
        kinds=_JOINS,
        sql="""
SELECT s.primary_key, s.foreign_key AS found_key, l.foreign_key AS expected_key,
  s.hash AS found_hash, l.hash AS expected_hash
FROM {subscriptions} s JOIN {left_rows} l ON l.primary_key = s.primary_key
WHERE NOT l.deleted AND l.foreign_key IS NOT NULL
  AND (s.foreign_key IS DISTINCT FROM l.foreign_key OR s.hash IS DISTINCT FROM l.hash)""",
    ),
    Rule(
        name="answer_subscribed",
        statement="Every answer that was applied to the current left row came from its subscription.",
        kinds=_JOINS,
        # The log remembers answers to values that the row no longer has; their subscriptions are rightly
        # gone, so only answers with the current hash count. An inner join retracts by an answer to the
        # deleted subscription of a row that now has no foreign key: the one answer that leaves no
        # subscription behind.
        sql="""
SELECT a.primary_key, a.foreign_key, a.hash, a.cause, a.batch
FROM {responses} a LEFT JOIN {subscriptions} s
  ON s.primary_key = a.primary_key AND s.foreign_key = a.foreign_key AND s.hash = a.hash
  JOIN {left_rows} l ON l.primary_key = a.primary_key AND l.hash = a.hash
WHERE a.resolution = 'applied' AND NOT l.deleted AND a.foreign_key IS NOT NULL
  AND (l.foreign_key IS NOT NULL OR a.cause = 'right_change') AND s.primary_key IS NULL""",
    ),
    Rule(
        name="nothing_pending",
        statement="Every left row whose right row lives is in the joined table.",
        kinds=("inner",),
        sql="""
SELECT l.primary_key, l.foreign_key
FROM {left_rows} l LEFT JOIN {joined} j ON j.primary_key = l.primary_key
  JOIN {right_rows} r ON r.primary_key = l.foreign_key
WHERE NOT l.deleted AND NOT r.deleted AND j.primary_key IS NULL""",
    ),
    Rule(
        name="nothing_pending",
        statement="Every left row is in the joined table, with its right row if that lives.",
        kinds=("left",),
        sql="""
SELECT l.primary_key, l.foreign_key, j.batch
FROM {left_rows} l
  LEFT JOIN {joined} j ON j.primary_key = l.primary_key
  LEFT JOIN {right_rows} r ON r.primary_key = l.foreign_key AND NOT r.deleted
WHERE NOT l.deleted
  AND (j.primary_key IS NULL OR (j.right_key IS NULL AND r.primary_key IS NOT NULL))""",
    ),
    Rule(
        name="one_row_per_key",
        statement="The table has one row for each key, tombstones included.",
        kinds=("table",),
        sql="""
SELECT primary_key, count(*) AS copies
FROM {rows}
GROUP BY primary_key
HAVING count(*) > 1""",
    ),
    Rule(
        name="hash_of_live_row",
        statement="A row has a hash exactly while it lives.",
        kinds=("table",),
        # Every rule above compares hashes; a null one would pass for a deleted row.
        sql="""
SELECT primary_key, hash, deleted
FROM {rows}
WHERE deleted = (hash IS NOT NULL)""",
    ),
)
"""Every rule, in the order in which they are shown."""


def rules_for(kind: Kind) -> tuple[Rule, ...]:
    """Return the rules that apply to a kind of join, or to a table."""
    return tuple(rule for rule in RULES if kind in rule.kinds)


def frames_for(kind: Kind) -> Mapping[str, tuple[str, ...]]:
    """Return the names of the frames that a kind's rules read, each with its columns."""
    return TABLE_FRAMES if kind == "table" else JOIN_FRAMES
