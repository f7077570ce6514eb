"""Totals of a join's frames, by which a batch of plain inserts is judged without grouping its rows.

Of a row that was not there before, everything is known from its two sides: with its foreign key it has one live
subscription, the answer to it, and the row that a join of keys and hashes yields. So the frames hold the same rows
whichever way these are counted, and totals tell: how many there are, and the exclusive or of their digests. With keys
that stand once, equal totals are equal sets, but for one chance in 2^64, and then no rule of `expectations.rules` is
broken. Unequal ones prove nothing of a batch that does more than insert: then the gate looks at every key.

Only the frame that has every key is grouped by it. Its keys then stand once, and so do those of the sides' rows that it
equals; and a frame with as many rows as some that each stand once, and the same exclusive or, has each of them once.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from expectations.gate import to_view
from expectations.keys import JOIN_FRAMES
from transforms.schemas import quoted
from transforms.specs import How

_JOINED = ("primary_key", "left_hash", "right_key", "right_hash")
_SUBSCRIBED = ("primary_key", "foreign_key", "left_hash")
_MET = "right_key IS NOT NULL"
_NAMED = "foreign_key IS NOT NULL"
_EVERY = "true"


def differing_totals(frames: Mapping[str, DataFrame], how: How) -> DataFrame:
    """Hold the totals of a join's frames against those that its two sides yield; nothing is run here.

    `frames`: as for `expectations.gate.gate`, restricted to touched keys. Returns rows like those of `gate`, one for
    each frame whose totals differ: `totals of` it as `rule`, how many rows it has as `offending`, no sample. Where
    there is none, `gate` would find none.
    """
    read: dict[str, Any] = {
        name: to_view(frames[name], columns, small=False) for name, columns in JOIN_FRAMES.items()
    }
    rows: DataFrame = read["right_rows"]
    right_key = rows.select("primary_key.*").columns
    return rows.sparkSession.sql(totals_sql(how, right_key), **read)


def totals_sql(how: How, right_key: Sequence[str]) -> str:
    """Return the query of `differing_totals`; it reads frames as `{name}`. `right_key`: the fields of the right key."""
    # an inner join answers only who finds its right row, and shows only those
    met, answered = (_MET, _MET) if how == "inner" else (_EVERY, _NAMED)
    expected = ",\n      ".join(
        f"struct('{frame}' AS frame, {_totals(columns, where)})"
        for frame, columns, where in (
            ("joined", _JOINED, met), ("subscriptions", _SUBSCRIBED, _NAMED), ("answers", _SUBSCRIBED, answered)
        )
    )  # fmt: skip
    joined = ("joined", _JOINED, "{joined}")
    subscribed = ("subscriptions", _SUBSCRIBED, "(SELECT *, hash AS left_hash FROM {subscriptions})")
    # a left join shows every row, an inner one only rows that have a subscription
    grouped, counted = (joined, subscribed) if how == "left" else (subscribed, joined)
    same_key = " AND ".join(f"r.primary_key.{name} = l.foreign_key.{name}" for name in map(quoted, right_key))
    return f"""
WITH sides AS (
  SELECT l.primary_key, l.foreign_key, l.hash AS left_hash, r.primary_key AS right_key, r.hash AS right_hash
  FROM (SELECT * FROM {{left_rows}} WHERE NOT deleted) l
  LEFT JOIN (SELECT * FROM {{right_rows}} WHERE NOT deleted) r ON {same_key}
), totals AS (
  SELECT inline(array(
      {expected}))
  FROM sides
  UNION ALL
  {_grouped(*grouped)}
  UNION ALL
  {_counted(*counted)}
  UNION ALL
  {_counted("answers", _SUBSCRIBED, "(SELECT *, hash AS left_hash FROM {answers})", _NAMED)}
)
SELECT concat('totals of ', frame) AS rule, max(copies) AS offending, CAST(NULL AS array<string>) AS sample
FROM totals
GROUP BY frame
HAVING min(copies) <> max(copies) OR max(keys) <> max(copies) OR min(digest) IS DISTINCT FROM max(digest)"""


def _grouped(frame: str, columns: tuple[str, ...], rows: str) -> str:
    # by key before they are grouped, for nearly all stand once
    digests = f"SELECT /*+ REPARTITION(key) */ xxhash64(primary_key) AS key, {_digest(columns)} AS digest FROM {rows}"
    by_key = f"SELECT count(*) AS copies, bit_xor(digest) AS digest FROM ({digests}) GROUP BY key"
    return f"SELECT '{frame}', coalesce(sum(copies), 0), count(*), bit_xor(digest) FROM ({by_key})"


def _counted(frame: str, columns: tuple[str, ...], rows: str, where: str = _EVERY) -> str:
    return f"SELECT '{frame}', {_totals(columns, where)} FROM {rows}"


def _totals(columns: tuple[str, ...], where: str) -> str:
    """How many rows there are, and what their digests come to; `keys` are told where rows are grouped by them."""
    return (
        f"count_if({where}) AS copies, CAST(NULL AS bigint) AS keys,"
        f" bit_xor(CASE WHEN {where} THEN {_digest(columns)} END) AS digest"
    )


def _digest(columns: tuple[str, ...]) -> str:
    # a null leaves the digest of what stands before it as it was, so each says whether it is one
    return f"xxhash64({', '.join(f'{column} IS NULL, {column}' for column in columns)})"
