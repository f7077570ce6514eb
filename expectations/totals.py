"""Compares totals of a join's frames, by which a batch of plain inserts is checked without grouping its rows.

Everything about a row that was not there before follows from its two sides: with its foreign key it has one live
subscription, the answer to it, and the row that a join of keys and hashes yields. So all frames must have the same
totals: the number of rows, and the exclusive or of their digests. If no key stands twice, equal totals mean equal sets,
but for one chance in 2^64, and then no rule of `expectations.rules` is broken. Unequal totals prove nothing for a batch
that does more than insert: then the gate looks at every key.

Keys that stand twice are seen when records are read. If the sides have as many rows as there were keys, and the same
exclusive or of keys, each row has a key of its own: only more rows could differ from distinct keys by pairs. Where
nobody looked, the frame that has every key is grouped by it, and stands for the others in the same way.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from lakejoin.expectations.gate import to_view
from lakejoin.expectations.keys import JOIN_FRAMES
from lakejoin.transforms.model.keys import KeyTotals
from lakejoin.transforms.model.schemas import quoted
from lakejoin.transforms.model.specs import How

_JOINED = ("primary_key", "left_hash", "right_key", "right_hash")
_SUBSCRIBED = ("primary_key", "foreign_key", "left_hash")
_MET = "right_key IS NOT NULL"
_NAMED = "foreign_key IS NOT NULL"
_EVERY = "true"


def differing_totals(frames: Mapping[str, DataFrame], how: How, keys: KeyTotals | None = None) -> DataFrame:
    """Compare the totals of a join's frames with those that its two sides yield; nothing is run here.

    `frames`: as for `expectations.gate.gate`, restricted to touched keys. `keys`: those that the left rows must have,
    where they are known. Returns rows like those of `gate`, one for each frame whose totals differ: `totals of` it as
    `rule`, how many rows it has as `offending`, no sample. Where there is none, `gate` would find none.
    """
    read: dict[str, Any] = {
        name: to_view(frames[name], columns, small=False) for name, columns in JOIN_FRAMES.items()
    }
    rows: DataFrame = read["right_rows"]
    right_key = rows.select("primary_key.*").columns
    return rows.sparkSession.sql(totals_sql(how, right_key, keys), **read)


def totals_sql(how: How, right_key: Sequence[str], keys: KeyTotals | None) -> str:
    """Return the query of `differing_totals`; it reads frames as `{name}`. `right_key`: the fields of the right key."""
    # an inner join answers only who finds its right row, and shows only those
    met, answered = (_MET, _MET) if how == "inner" else (_EVERY, _NAMED)
    of_sides = [
        ("joined", _JOINED, met), ("subscriptions", _SUBSCRIBED, _NAMED), ("answers", _SUBSCRIBED, answered)
    ]  # fmt: skip
    expected = ",\n      ".join(
        f"struct('{frame}' AS frame, {_totals(_digest(columns), where)})"
        for frame, columns, where in of_sides
    )
    if keys is not None:
        expected += f",\n      struct('keys' AS frame, {_totals('xxhash64(primary_key)', _EVERY)})"
    joined = ("joined", _JOINED, "{joined}")
    subscribed = ("subscriptions", _SUBSCRIBED, "(SELECT *, hash AS left_hash FROM {subscriptions})")
    # a left join shows every row, an inner one only rows that have a subscription
    all_keys, others = (joined, subscribed) if how == "left" else (subscribed, joined)
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
  {_grouped(*all_keys) if keys is None else _counted(*all_keys)}
  UNION ALL
  {_counted(*others)}
  UNION ALL
  {_counted("answers", _SUBSCRIBED, "(SELECT *, hash AS left_hash FROM {answers})", _NAMED)}
  {"" if keys is None else _stated(keys)}
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
    return f"SELECT '{frame}', {_totals(_digest(columns), where)} FROM {rows}"


def _stated(keys: KeyTotals) -> str:
    digest = "NULL" if keys.digest is None else f"'{keys.digest}'"
    return f"UNION ALL SELECT 'keys', {keys.count}L, CAST(NULL AS bigint), CAST({digest} AS bigint)"


def _totals(digest: str, where: str) -> str:
    """How many rows there are, and what their digests come to; `keys` are told where rows are grouped by them."""
    return (
        f"count_if({where}) AS copies, CAST(NULL AS bigint) AS keys,"
        f" bit_xor(CASE WHEN {where} THEN {digest} END) AS digest"
    )


def _digest(columns: tuple[str, ...]) -> str:
    # a null leaves the digest of what stands before it as it was, so each says whether it is one
    return f"xxhash64({', '.join(f'{column} IS NULL, {column}' for column in columns)})"
