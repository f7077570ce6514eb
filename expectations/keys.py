"""Builds the view that the rules read: what is known of each primary key, in one row.

Every frame is read once and grouped by primary key, whatever the number of rules. When each rule joined the frames in
pairs, that took a sixth of a first load's time, and half a second of planning in a small batch.

The columns of a join's view: `lives`, `foreign_key` and `left_hash` of the left row; of its rows in the joined table
how many there are (`joined`), `joined_left_hash`, `right_key` (null: no match), `joined_right_hash` and `batch`, and
how many pairs do not meet the join's condition (`unmet`); of its live subscriptions how many (`subscriptions`),
`subscribed_key` and `subscribed_hash`; of the answer that was applied last `answer_key`, `answer_hash` and whether a
right change caused it (`told`); `right_lives` and `right_hash` of the right row that the joined row names, or else the
foreign key. Of a table: `copies` of the key, `contradictions` among them, `hash`, `deleted`. The queries of the other
kinds list their own columns.
"""

from collections.abc import Mapping
from typing import Literal

from lakejoin.transforms.model.specs import How

Kind = Literal[
    "inner",
    "left",
    "members",
    "groups",
    "totals",
    "versions",
    "event_versions",
    "table",
    "history",
    "stream",
    "stream_left",
    "batches",
]
"""What a rule is about: a join of tables by its `how`, the rows that are grouped, the groups, what is kept beside those
that are adjusted, the history of a result, one by event time, a declared table, the history of a versioned one, the
join of a stream (inner, or left), or the batches of such a join."""

STREAM_JOINS: Mapping[How, Kind] = {"inner": "stream", "left": "stream_left"}
"""The kind that the join of a stream is by its `how`; that of a join of tables is called so itself."""


def stream_kind(how: How, *, condition: bool) -> Kind:
    """The kind that the join of a stream is; with a condition any record may be missing, as in an inner one."""
    return STREAM_JOINS["inner" if condition else how]


JOIN_FRAMES: Mapping[str, tuple[str, ...]] = {
    "left_rows": ("primary_key", "foreign_key", "hash", "deleted"),
    "right_rows": ("primary_key", "hash", "deleted"),
    "subscriptions": ("foreign_key", "primary_key", "hash"),
    "joined": ("primary_key", "left_hash", "right_key", "right_hash", "batch", "filtered"),
    "answers": ("primary_key", "foreign_key", "hash", "cause"),
}
"""Frames of a join with their columns. `joined` also holds the pairs that do not meet the join's condition, as
`filtered`. `subscriptions` are live ones, `answers` the last applied one of each key."""

MEMBER_FRAMES: Mapping[str, tuple[str, ...]] = {
    name: JOIN_FRAMES[name] for name in ("left_rows", "subscriptions")
}
"""Frames of what is grouped: rows with the key of their group, and to which groups they have subscribed."""
GROUP_FRAMES: Mapping[str, tuple[str, ...]] = {
    "expected": ("primary_key", "hash"),
    "found": ("primary_key", "hash", "batch"),
}
"""Frames of groups: as their rows make them, and as they are kept."""
TOTAL_FRAMES: Mapping[str, tuple[str, ...]] = {"totals": ("primary_key", "rows", "rest")}
"""The frame of groups that are adjusted: how many rows each has, and whether anything that these added is there."""
VERSION_FRAMES: Mapping[str, tuple[str, ...]] = {
    "kept": ("primary_key", "begun", "ended", "hash"),
    "shown": ("primary_key", "hash"),
}
"""Frames of a result's history: versions with the batches that began and ended them, and the rows of the result."""
EVENT_FRAMES: Mapping[str, tuple[str, ...]] = {
    "spells": ("primary_key", "valid_from", "valid_to", "hash"),
    "moments": ("primary_key", "moment", "hash"),
}
"""Frames of a history by event time: its rows by the key of their left row, and what the join has of this key at each
moment at which anything of it changes, null for nothing."""
TABLE_FRAMES: Mapping[str, tuple[str, ...]] = {"rows": ("primary_key", "hash", "deleted")}
"""The frame of a declared table: its current rows, tombstones included."""

HISTORY_FRAMES: Mapping[str, tuple[str, ...]] = {
    "versions": ("primary_key", "valid_from", "valid_to"),
    "latest": ("primary_key", "hash"),
    "rows": ("primary_key", "hash"),
}
"""Frames of a history: its folded intervals; of all of it the last value of each key that has one; the live rows."""
STREAM_FRAMES: Mapping[str, tuple[str, ...]] = {
    "records": ("primary_key", "hash"),
    "joined": ("primary_key", "left_hash", "batch"),
    "waiting": ("primary_key",),
    "late": ("primary_key",),
}
"""Frames of a stream's join, each by the positions of records: those accepted, joined, waiting and dropped."""
BATCH_FRAMES: Mapping[str, tuple[str, ...]] = {
    "batches": (
        "primary_key", "clock", "clock_before", "received", "sorted", "waited", "left_waiting", "emitted", "kept",
        "waiting", "in_buffer",
    )
}  # fmt: skip
"""The frame of a join's batches: stream time after and before; records received and the sum of where they went; records
that waited before or came to wait, and those that left or wait still; rows emitted, null where nobody looks at them,
and rows of the batch that the joined table has; records that are said to wait, and those in the buffer, null but for
the last batch."""

_BY_PRIMARY_KEY: Mapping[str, Mapping[str, str]] = {
    "left_rows": {"lives": "NOT deleted", "foreign_key": "foreign_key", "left_hash": "hash"},
    "joined": {
        "joined": "CASE WHEN NOT filtered THEN 1 END",
        "unmet": "CASE WHEN filtered THEN 1 END",
        "joined_left_hash": "left_hash",
        "right_key": "right_key",
        "joined_right_hash": "right_hash",
        "batch": "batch",
    },
    "subscriptions": {"subscriptions": "1", "subscribed_key": "foreign_key", "subscribed_hash": "hash"},
    "answers": {"answer_key": "foreign_key", "answer_hash": "hash", "told": "cause = 'right_change'"},
}
"""What the view takes from each frame."""
_GROUPED: Mapping[str, str] = {
    "joined": "count(joined)",
    "unmet": "count(unmet)",
    "subscriptions": "count(subscriptions)",
    "lives": "coalesce(max(lives), false)",
}
"""How rows of a key become one, where it is not by `max`: there is one, or the counts say that there are more."""

_TABLE = """\
SELECT primary_key, count(*) AS copies, sum(CASE WHEN deleted = (hash IS NOT NULL) THEN 1 ELSE 0 END) AS contradictions,
  max(hash) AS hash, max(deleted) AS deleted
FROM {rows} GROUP BY primary_key"""
_GROUPS = """\
SELECT primary_key, count_if(kind = 'found') AS found, max(CASE WHEN kind = 'found' THEN hash END) AS found_hash,
  count_if(kind = 'expected') AS expected, max(CASE WHEN kind = 'expected' THEN hash END) AS expected_hash,
  max(batch) AS batch
FROM (
  SELECT primary_key, 'found' AS kind, hash, batch FROM {found}
  UNION ALL SELECT primary_key, 'expected', hash, NULL FROM {expected}
) parts
GROUP BY primary_key"""
_VERSIONS = """\
SELECT primary_key, count_if(kind = 'version' AND coalesce(ended, 9223372036854775807) > following) AS doubled,
  count_if(kind = 'version' AND ended <= begun) AS instants,
  max(CASE WHEN kind = 'version' AND ended IS NULL THEN hash END) AS current_hash,
  max(CASE WHEN kind = 'row' THEN hash END) AS row_hash
FROM (
  SELECT primary_key, 'version' AS kind, begun, ended,
    lead(begun) OVER (PARTITION BY primary_key ORDER BY begun, ended NULLS LAST) AS following, hash
  FROM {kept}
  UNION ALL SELECT primary_key, 'row', NULL, NULL, NULL, hash FROM {shown}
) parts
GROUP BY primary_key"""
_EVENTS = """\
SELECT primary_key, count_if(is_row AND ends > following) AS doubled, count_if(is_row AND ends <= begins) AS instants,
  count_if(is_row AND ends = following AND hash IS NOT DISTINCT FROM next_hash) AS cut,
  count_if(NOT is_row AND hash IS DISTINCT FROM found) AS wrong,
  min(CASE WHEN NOT is_row AND hash IS DISTINCT FROM found THEN begins END) AS first_wrong
FROM (
  SELECT *, CASE WHEN begins < max(ends) OVER (PARTITION BY primary_key, begun)
    THEN max(CASE WHEN is_row THEN hash END) OVER (PARTITION BY primary_key, begun) END AS found
  FROM (
    SELECT *, max(CASE WHEN is_row THEN begins END) OVER (
      PARTITION BY primary_key ORDER BY begins, CASE WHEN is_row THEN 0 ELSE 1 END
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS begun
    FROM (
      SELECT primary_key, true AS is_row, valid_from AS begins, coalesce(valid_to, timestamp'9999-12-31') AS ends, hash,
        lead(valid_from) OVER (PARTITION BY primary_key ORDER BY valid_from) AS following,
        lead(hash) OVER (PARTITION BY primary_key ORDER BY valid_from) AS next_hash
      FROM {spells}
      UNION ALL SELECT primary_key, false, moment, NULL, hash, NULL, NULL FROM {moments}
    ) parts
  ) ordered
) met
GROUP BY primary_key"""
_TOTALS = "SELECT * FROM {totals}"
_HISTORY = """\
SELECT primary_key, count_if(kind = 'interval' AND ends > following) AS doubled,
  count_if(kind = 'interval' AND ends < following) AS gaps, count_if(kind = 'interval' AND ends <= begins) AS instants,
  max(CASE WHEN kind = 'latest' THEN hash END) AS latest_hash, max(CASE WHEN kind = 'row' THEN hash END) AS row_hash
FROM (
  SELECT primary_key, 'interval' AS kind, valid_from AS begins,
    coalesce(valid_to, timestamp'9999-12-31') AS ends,
    lead(valid_from) OVER (PARTITION BY primary_key ORDER BY valid_from) AS following, NULL AS hash
  FROM {versions}
  UNION ALL SELECT primary_key, 'latest', NULL, NULL, NULL, hash FROM {latest}
  UNION ALL SELECT primary_key, 'row', NULL, NULL, NULL, hash FROM {rows}
) parts
GROUP BY primary_key"""
_STREAM = """\
SELECT primary_key, count_if(kind = 'record') AS records, max(CASE WHEN kind = 'record' THEN hash END) AS hash,
  count_if(kind = 'joined') AS joined, max(CASE WHEN kind = 'joined' THEN hash END) AS joined_hash,
  count_if(kind = 'waiting') AS waiting, count_if(kind = 'late') AS late, max(batch) AS batch
FROM (
  SELECT primary_key, 'record' AS kind, hash, NULL AS batch FROM {records}
  UNION ALL SELECT primary_key, 'joined', left_hash, batch FROM {joined}
  UNION ALL SELECT primary_key, 'waiting', NULL, NULL FROM {waiting}
  UNION ALL SELECT primary_key, 'late', NULL, NULL FROM {late}
) parts
GROUP BY primary_key"""
_BATCHES = "SELECT * FROM {batches}"
_WHOLE: Mapping[Kind, str] = {
    "groups": _GROUPS, "totals": _TOTALS, "versions": _VERSIONS, "event_versions": _EVENTS, "table": _TABLE,
    "history": _HISTORY, "stream": _STREAM, "stream_left": _STREAM, "batches": _BATCHES,
}  # fmt: skip
"""The views of what is no join of tables."""
_FRAMES: Mapping[Kind, Mapping[str, tuple[str, ...]]] = {
    "members": MEMBER_FRAMES,
    "groups": GROUP_FRAMES,
    "totals": TOTAL_FRAMES,
    "versions": VERSION_FRAMES,
    "event_versions": EVENT_FRAMES,
    "table": TABLE_FRAMES,
    "history": HISTORY_FRAMES,
    "stream": STREAM_FRAMES,
    "stream_left": STREAM_FRAMES,
    "batches": BATCH_FRAMES,
}


def frames_for(kind: Kind) -> Mapping[str, tuple[str, ...]]:
    """Return the names of the frames that a kind's view reads, each with its columns."""
    return _FRAMES.get(kind, JOIN_FRAMES)


def keys_sql(kind: Kind, hint: str = "") -> str:
    """Return the query that makes the view; it reads frames as `{name}`. `hint`: how Spark lays their union out."""
    if kind in _WHOLE:
        return _WHOLE[kind]
    frames = [frame for frame in _BY_PRIMARY_KEY if frame in frames_for(kind)]
    columns = [column for frame in frames for column in _BY_PRIMARY_KEY[frame]]
    parts = "\n    UNION ALL\n".join(_part(frame, columns) for frame in frames)
    grouped = ",\n    ".join(f"{_GROUPED.get(column, f'max({column})')} AS {column}" for column in columns)
    by_key = f"""\
  SELECT primary_key,
    {grouped}
  FROM (SELECT {hint} * FROM (
{parts}
  ) parts) rows_of_keys
  GROUP BY primary_key"""
    if kind == "members":
        return by_key
    return f"""\
SELECT k.*, r.primary_key IS NOT NULL AND NOT r.deleted AS right_lives, r.hash AS right_hash
FROM (
{by_key}
) k LEFT JOIN {{right_rows}} r ON r.primary_key = coalesce(k.right_key, k.foreign_key)"""


def _part(frame: str, columns: list[str]) -> str:
    taken = _BY_PRIMARY_KEY[frame]
    values = ", ".join(f"{taken.get(column, 'NULL')} AS {column}" for column in columns)
    return f"    SELECT primary_key, {values} FROM {{{frame}}}"
