"""Works pipelines off in a process of its own, as a cluster or an object store needs: `runs.py '{JSON}'`.

One process has one Spark session, whose master and JARs stay as they were when it started; that of the tests is local.
"""

import json
import sys
from pathlib import Path
from unittest import mock

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]

from pyspark.sql import SparkSession  # noqa: E402 - only now it is found

from faults.crashing import Crash, commits  # noqa: E402
from orchestration.config import Pipeline, load  # noqa: E402
from orchestration.run import run_batches  # noqa: E402
from storage.session import start_session  # noqa: E402

LARGE = ("storage.frames", "storage.joined", "orchestration.batch", "orchestration.join_batch")
"""Modules that ask whether a batch is small."""


def work_off(pipeline: Pipeline, spark: SparkSession, way: str) -> None:
    """Run a pipeline to its end; `crashing`: cut off after every fourth commit, and begun again."""
    crashes = 0
    while way == "crashing":
        try:
            with commits(3):
                list(run_batches(pipeline, spark))
        except Crash:
            crashes += 1
        else:
            break
    if way == "large":  # frames in files, joins with shuffles
        with mock.patch.multiple("storage.frames", SMALL=-1), mock.patch.multiple("storage.joined", SMALL=-1):
            list(run_batches(pipeline, spark))
    batches = len(list(run_batches(pipeline, spark)))
    sys.stdout.write(f"{pipeline.path.parent.name} {way}: {crashes} crashes, {batches} batches\n")


def main(text: str) -> None:
    """`text`: JSON of `runs`, pairs of a configuration and a way; the first one's settings start the session."""
    runs = [(load(Path(path)), way) for path, way in json.loads(text)]
    first, _ = runs[0]
    places = [place for pipeline, _ in runs for place in pipeline.places]
    spark = start_session(first.spark.master, first.spark.conf, places)
    for pipeline, way in runs:
        work_off(pipeline, spark, way)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
