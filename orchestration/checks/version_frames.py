"""Reads the frames that the rules of a result's history need: all versions, or those of keys that batches touched."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakejoin.expectations.validation import Asset
from lakejoin.orchestration.checks.event_frames import event_asset
from lakejoin.orchestration.checks.join_frames import Scope
from lakejoin.orchestration.config import Pipeline
from lakejoin.transforms.foreign_key_join.history import UNTIL, by_event_time
from lakejoin.transforms.model.hashing import value_hash
from lakejoin.transforms.model.keys import restrict
from lakejoin.transforms.model.result_spec import ResultSpec
from lakejoin.transforms.model.schemas import BATCH, HASH, key_struct, named

HISTORY = ".history"
"""How the history of a result is called among what is checked, after the name of the result."""


def version_assets(pipeline: Pipeline, join: ResultSpec, scope: Scope) -> list[Asset]:
    """Return the frames of a result's history; none where it is not kept."""
    if join.history is None:
        return []
    if by_event_time(join):
        return [event_asset(pipeline, join, f"{join.name}{HISTORY}", scope)]
    kept, shown = scope.state.history(join), scope.state.joined(join)
    if scope.since is not None:
        touched = _keys(kept, (named(BATCH) > scope.since) | (F.col(UNTIL) > scope.since), join)
        changed = _keys(shown, named(BATCH) > scope.since, join)
        keys = scope.keys(scope.keep(touched.union(changed).distinct()), null_matches=join.key_may_be_null)
        kept, shown = (restrict(rows, keys, join.joined_key) for rows in (kept, shown))
    key = key_struct(join.joined_key).alias("primary_key")
    versions = kept.select(
        key, named(BATCH).alias("begun"), F.col(UNTIL).alias("ended"), named(HASH).alias("hash")
    )
    rows = shown.select(key, value_hash(join.columns).alias("hash"))
    return [
        Asset(f"{join.name}{HISTORY}", "versions", {"kept": versions, "shown": rows}, small=scope.in_one_task)
    ]


def _keys(rows: DataFrame, which: Column, join: ResultSpec) -> DataFrame:
    return rows.where(which).select(*map(named, join.joined_key))
