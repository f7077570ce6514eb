"""What waits for its grace period, over flushes, crashes and joins that come later."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from faults.board import CONFIGURATION, make_board
from faults.crashing import Crash, commits
from faults.shop import content, copy_of, make_pipeline, run
from lakejoin.orchestration.config import Pipeline
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def first_day(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Pipeline:
    """Return a pipeline with one finished batch and input for the next."""
    pipeline = make_board(tmp_path_factory.mktemp("board") / "first", ["2024-01-01"])
    run(pipeline, spark)
    return make_board(pipeline.path.parent, ["2024-01-01", "2024-01-02"])


def test_flush_joins_what_waits_once(first_day: Pipeline, tmp_path: Path, spark: SparkSession) -> None:
    """In a batch of its own, which a crash does not repeat; what was flushed does not leave again later."""
    pipeline = copy_of(first_day, tmp_path / "board")
    assert run(pipeline, spark) == 1
    with commits(0, "after"), pytest.raises(Crash):
        run(pipeline, spark, flush=True)
    assert run(pipeline, spark, flush=True) == 1
    assert run(pipeline, spark, flush=True) == 0
    last = Journal(Lake(pipeline.lake)).published[-1]
    assert (last.kind, last.joins["at_time"]["released"], last.joins["at_time"]["waiting"]) == ("flush", 2, 0)
    (pipeline.path.parent / "departures" / "2024-01-03.jsonl").write_text(
        json.dumps({"op": "c", "id": 9, "station": "EWR", "at": "2024-01-02T20:00:00Z"}) + "\n"
    )
    assert run(pipeline, spark) == 1
    assert Journal(Lake(pipeline.lake)).published[-1].joins["at_time"]["released"] == 0


def test_join_that_is_added_starts_from_every_record_there_is(
    first_day: Pipeline, tmp_path: Path, spark: SparkSession
) -> None:
    """It joins each as of its time, as far as the history goes back by now, and takes none for late.

    What waits goes on waiting.
    """
    pipeline = copy_of(first_day, tmp_path / "board")
    assert run(pipeline, spark) == 1
    added = CONFIGURATION + (
        "  added: {stream: departures, table: weather, foreign_key: [station], how: left, grace: 2 hours}\n"
    )
    pipeline = make_pipeline(tmp_path / "board", added)

    assert run(pipeline, spark) == 1

    last = Journal(Lake(pipeline.lake)).published[-1]
    wanted = {"received": 6, "at_once": 1, "buffered": 5, "late": 0, "released": 3, "waiting": 2}
    assert last.kind == "bootstrap"
    assert last.joins["added"] | wanted == last.joins["added"]
    names = ("joins/added/joined", "joins/at_time/joined")
    found = [[json.loads(row) for row in content(pipeline, spark)[name]] for name in names]
    assert [{row["id"]: row["right_temp"] for row in rows} for rows in found] == [
        {1: None, 2: 5, 3: None, 6: 4},  # the history begins at ten; what was valid at nine still is
        {1: 1, 2: 5, 3: None},
    ]
