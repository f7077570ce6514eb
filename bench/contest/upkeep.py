"""What Lakejoin does for its tables when nothing is waiting: all of it, whether it is due or not."""

from pyspark.sql import SparkSession

from orchestration.config import Pipeline
from storage.compaction import compact
from storage.lake import Lake, joined_of
from storage.lock import writing


def maintain_all(pipeline: Pipeline, spark: SparkSession) -> None:
    """Compact the joined tables of a lake; its logs are folded after the batches that make it due."""
    lake = Lake(pipeline.lake)
    with writing(lake):
        for name in pipeline.joins:
            compact(spark, lake.path(joined_of(name)))
