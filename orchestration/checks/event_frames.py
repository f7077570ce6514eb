"""Reads the frames that the rules of a history by event time need: its rows, and what the join has moment by moment.

What the join has is found here in another way than a batch finds it. At each moment at which a version of a side
begins, or a row of the history begins or ends, the versions that are valid then are looked up, one by one.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakejoin.expectations.validation import Asset
from lakejoin.orchestration.checks.join_frames import Scope
from lakejoin.orchestration.config import Pipeline
from lakejoin.storage.state.settled_times import settled_until
from lakejoin.transforms.changelog.versions import intervals
from lakejoin.transforms.foreign_key_join.temporal_join import SPAN, left_versions, made_of
from lakejoin.transforms.model.event_time import instant, valid_at
from lakejoin.transforms.model.hashing import value_hash
from lakejoin.transforms.model.join_sides import joined_left_key, right_valued
from lakejoin.transforms.model.keys import restrict
from lakejoin.transforms.model.result_spec import ResultSpec
from lakejoin.transforms.model.schemas import BATCH, HASH, VALID_FROM, VALID_TO, VALIDITY, named
from lakejoin.transforms.model.specs import JoinSpec, TableSpec

MOMENT = "_lj_moment"
"""When the join is looked at; no column of a result has this name."""


def event_asset(pipeline: Pipeline, join: ResultSpec, name: str, scope: Scope) -> Asset:
    """Return the frames of a join's history by event time. `name`: how it is called among what is checked.

    Moments that are settled already are left out: folds may have dropped what was true then.
    """
    state, tables = scope.state, {side: pipeline.tables[side].spec for side in join.reads}
    kept, left = state.history(join), state.versions(tables[join.left])
    if scope.since is not None:
        # a change of a right row alone shows in what was written of the left rows that it met
        came = left.where(named(BATCH) > scope.since).select(*map(named, join.left_key))
        wrote = kept.where(named(BATCH) > scope.since).select(*map(named, join.joined_left_key))
        keys = scope.keys(scope.keep(came.union(wrote).distinct()))
        left = restrict(left, keys, join.left_key)
        renamed = replace(keys, rows=keys.rows.toDF(*join.joined_left_key))
        kept = restrict(kept, renamed, join.joined_left_key)
    spans = left_versions(intervals(left, tables[join.left]), join)
    rights = [_right(part, tables[part.right], scope) for part in join.parts]
    rows = kept.select(
        joined_left_key(join).alias("primary_key"), VALID_FROM, VALID_TO, named(HASH).alias("hash")
    )
    moments = _moments(spans, rights, rows, join)
    bound = settled_until(state.plan, list(tables.values()))
    if bound is not None:
        moments = moments.where(F.col(MOMENT) >= instant(bound))
    frames = {"spells": rows, "moments": _with_hashes(moments, spans, rights, join)}
    return Asset(name, "event_versions", frames, small=scope.in_one_task)


def _right(part: JoinSpec, table: TableSpec, scope: Scope) -> DataFrame:
    """Versions of a right side by the names that pairs have for them, and `right_span`."""
    versions = intervals(scope.state.versions(table), table).withColumn(SPAN, F.struct(*VALIDITY))
    names = {"primary_key": "right_key", "hash": "right_hash", "value": "right_value", SPAN: "right_span"}
    return right_valued(versions, part, SPAN).select(
        *[F.col(name).alias(part.of_side(other)) for name, other in names.items()]
    )


def _moments(spans: DataFrame, rights: Sequence[DataFrame], rows: DataFrame, join: ResultSpec) -> DataFrame:
    """Left keys, each with the moments at which something that it is joined with may change."""
    span = F.col(SPAN)
    found = [
        spans.select("primary_key", F.explode(F.array(span[VALID_FROM], span[VALID_TO])).alias(MOMENT)),
        rows.select("primary_key", F.explode(F.array(VALID_FROM, VALID_TO)).alias(MOMENT)),
    ]
    for part, right in zip(join.parts, rights, strict=True):
        key, begins = part.of_side("right_key"), F.col(part.of_side("right_span"))[VALID_FROM]
        met = spans.join(right, F.col(part.of_side("foreign_key")) == F.col(key))
        found.append(met.select("primary_key", begins.alias(MOMENT)))
    return reduce(DataFrame.unionAll, found).where(F.col(MOMENT).isNotNull()).distinct()


def _with_hashes(
    moments: DataFrame, spans: DataFrame, rights: Sequence[DataFrame], join: ResultSpec
) -> DataFrame:
    """Put beside each moment the hash of the row that the join has of its key then, null for none."""
    asked = moments.select(F.col("primary_key").alias("asked_key"), MOMENT)
    pairs = asked.join(spans, (F.col("asked_key") == F.col("primary_key")) & _valid(F.col(SPAN)))
    for part, right in zip(join.parts, rights, strict=True):
        same = F.col(part.of_side("foreign_key")) == F.col(part.of_side("right_key"))
        pairs = pairs.join(right, same & _valid(F.col(part.of_side("right_span"))), "left")
    made = made_of(pairs, join, MOMENT).select(
        joined_left_key(join).alias("made_key"),
        F.col(MOMENT).alias("made_at"),
        value_hash(join.columns).alias("hash"),
    )
    same_moment = (F.col("primary_key") == F.col("made_key")) & (F.col(MOMENT) == F.col("made_at"))
    return moments.join(made, same_moment, "left").select(
        "primary_key", F.col(MOMENT).alias("moment"), "hash"
    )


def _valid(span: Column) -> Column:
    return valid_at(F.col(MOMENT), span[VALID_FROM], span[VALID_TO])
