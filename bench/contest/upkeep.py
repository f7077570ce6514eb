"""What Lakejoin does for its tables when nothing is waiting: all of it, whether it is due or not."""

from pyspark.sql import SparkSession

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.maintenance.maintain import maintain


def maintain_all(pipeline: Pipeline, spark: SparkSession) -> None:
    """Fold, compact and vacuum the tables of a lake; old versions go when the pipeline's retention is over."""
    for _ in maintain(pipeline, lambda: spark, everything=True):
        pass
