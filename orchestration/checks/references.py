"""Reads from a lake where the foreign keys of a join point, and holds dangling ones against the share that may be."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lakejoin.orchestration.checks.join_frames import checked_name
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.config.schema.expect import Bound
from lakejoin.orchestration.lake_state.config_fingerprints import check_shapes
from lakejoin.orchestration.lake_state.published_snapshot import published_snapshot
from lakejoin.orchestration.spark_errors import explained
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.state.pinned_state import State
from lakejoin.transforms.foreign_key_join.references import references, totals
from lakejoin.transforms.foreign_key_join.subscriptions import live_subscriptions
from lakejoin.transforms.model.schemas import DELETED, key_struct, named
from lakejoin.transforms.model.specs import JoinSpec


@dataclass(frozen=True)
class Dangling:
    """How many foreign keys point nowhere, where the file says what share of them may."""

    name: str
    """Of the join, with a star's right side behind it."""
    left_rows: int
    """Live left rows with a foreign key that is not null."""
    dangling: int
    """Those of them whose right row is not there."""
    bound: Bound
    """What share may be dangling."""

    @property
    def share(self) -> float:
        """The dangling part of the left rows; 0 where there are none."""
        return self.dangling / self.left_rows if self.left_rows else 0.0

    @property
    def exceeds(self) -> bool:
        """Whether more dangle than may."""
        return not self.bound.allows(self.share)


def read_references(pipeline: Pipeline, part: JoinSpec, state: State) -> tuple[DataFrame, DataFrame]:
    """What `transforms.foreign_key_join.references` needs of a join with one right side: references, right keys."""
    referred = references(live_subscriptions(state.subscriptions(part)))
    if part.right in pipeline.tables:
        right = state.all_rows(pipeline.tables[part.right].spec, [DELETED]).where(~named(DELETED))
    else:
        right = state.joined(pipeline.group_spec(part.right))
    return referred, right.select(key_struct(part.right_key).alias("right_key"))


def check_dangling(pipeline: Pipeline, spark: SparkSession, names: Collection[str]) -> Mapping[str, Dangling]:
    """Do what `count_dangling` does for a lake as its last finished batch left it, and raise what `check_lake` does."""
    lake = Lake(pipeline.lake)
    journal = Journal(lake)
    check_shapes(pipeline, journal)
    with explained(pipeline, "a check"):
        found = count_dangling(pipeline, State(spark, lake, published_snapshot(journal)), names)
    return {one.name: one for one in found}


def count_dangling(pipeline: Pipeline, state: State, names: Collection[str]) -> Sequence[Dangling]:
    """Count the dangling foreign keys of joins, in one Spark job; nothing is read of those that allow any number."""
    bounded = [
        (part, bound)
        for name in names
        for part in pipeline.join_spec(name).parts
        if (bound := pipeline.dangling_bound(name, part.side)) is not None
    ]
    if not bounded:
        return []
    counts = [
        totals(*read_references(pipeline, part, state), part).withColumn("name", F.lit(part.name))
        for part, _ in bounded
    ]
    found = {row["name"]: row for row in reduce(DataFrame.unionByName, counts).collect()}
    return [
        Dangling(checked_name(part), found[part.name]["left_rows"], found[part.name]["dangling"], bound)
        for part, bound in bounded
    ]
