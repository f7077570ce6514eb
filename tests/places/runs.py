"""Works pipelines off in a process of its own, as a cluster or an object store needs: `runs.py '{JSON}'`.

One process has one Spark session, whose master and JARs stay as they were when it started; that of the tests is local.
"""

import json
import sys
from pathlib import Path
from unittest import mock

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]

from pyspark.sql import SparkSession  # noqa: E402 - only now it is found

from faults.crashing import Crash, commits  # noqa: E402 - as above
from lakejoin.orchestration.config import Pipeline, load  # noqa: E402 - as above
from lakejoin.orchestration.runs.retry_quarantine import retry  # noqa: E402 - as above
from lakejoin.orchestration.runs.run import run_batches  # noqa: E402 - as above
from lakejoin.storage.spark.session import start_session  # noqa: E402 - as above

COMMITS_BETWEEN_CRASHES = 4
ROWS_OF_A_BATCH = 8000


def straight(pipeline: Pipeline, spark: SparkSession) -> str:
    """Work everything off."""
    return f"{len(list(run_batches(pipeline, spark)))} batches"


def large(pipeline: Pipeline, spark: SparkSession) -> str:
    """Work everything off as large batches are: frames in files, joins with shuffles, first rows written ahead."""
    with (
        mock.patch("lakejoin.storage.spark.kept_frames.SMALL", -1),
    ):
        return straight(pipeline, spark)


def crashing(pipeline: Pipeline, spark: SparkSession) -> str:
    """Work everything off, cut off after every fourth commit and begun again."""
    crashes = 0
    while True:
        try:
            with commits(COMMITS_BETWEEN_CRASHES - 1):
                straight(pipeline, spark)
        except Crash:
            crashes += 1
        else:
            return f"{crashes} crashes"


def cut(pipeline: Pipeline, spark: SparkSession) -> str:
    """Work everything off in batches of some thousand records."""
    return f"{len(list(run_batches(pipeline, spark, batch_rows=ROWS_OF_A_BATCH)))} batches"


def retried(pipeline: Pipeline, spark: SparkSession) -> str:
    """Read once more what is in quarantine."""
    done = list(retry(pipeline, lambda: spark, list(pipeline.inputs)))
    return f"{sum(counts['applied'] for batch in done for counts in batch.tables.values())} applied"


WAYS = {way.__name__: way for way in (straight, large, crashing, cut, retried)}


def main(text: str) -> None:
    """`text`: JSON of a list of configurations with a way each. The settings of the first start the session."""
    runs = [(load(Path(path)), WAYS[way]) for path, way in json.loads(text)]
    first, _ = runs[0]
    places = [place for pipeline, _ in runs for place in pipeline.places]
    spark = start_session(first.spark.master, first.spark.conf, places)
    for pipeline, way in runs:
        sys.stdout.write(f"{pipeline.path.parent.name}: {way(pipeline, spark)}\n")
        sys.stdout.flush()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
