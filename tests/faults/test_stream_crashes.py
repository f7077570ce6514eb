"""A batch of a stream and a versioned table that is cut off at any of its commits ends as if nothing had happened."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from faults.crashing import Crash, When, commits
from faults.shop import Content, content, copy_of, run
from orchestration.config import Pipeline, load
from storage.lake import Lake
from storage.plan import Journal

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CONFIGURATION = """\
name: board
lake: ./lake
tables:
  weather:
    source: {format: jsonl, path: "weather/{date}.jsonl"}
    columns: {station: string, temp: int, at: timestamp}
    key: [station]
    event_time: at
    versioned: {history_retention: 1 day}
streams:
  departures:
    source: {format: jsonl, path: "departures/{date}.jsonl"}
    columns: {id: int, station: string, at: timestamp}
    key: [id]
    event_time: at
joins:
  at_time: {stream: departures, table: weather, foreign_key: [station], how: left, grace: 2 hours}
  known: {stream: departures, table: weather, foreign_key: [station], how: inner, prefix: weather_}
"""
WEATHER = {
    "2024-01-01": [("EWR", 1, "01T06"), ("JFK", 2, "01T07")],
    # a correction, one in time, one late, one too old, and one without a time
    "2024-01-02": [
        ("JFK", 5, "01T07"), ("EWR", 3, "02T10"), ("EWR", 4, "01T20"), ("EWR", 6, "01T01"), ("JFK", 7, None),
    ],
}  # fmt: skip
DEPARTURES = {
    "2024-01-01": [(1, "EWR", "01T08"), (2, "JFK", "01T09"), (3, None, "01T09")],
    # what waited leaves, one waits, one comes late, one is from the far future
    "2024-01-02": [(4, "EWR", "02T11"), (5, "LGA", "02T11"), (6, "EWR", "02T08"), (7, "JFK", "09T00")],
}
COMMITS = 9
"""Plan, changes and quarantine of the table, records and quarantine of the stream, late, two joined, the end."""


def make_board(folder: Path, days: list[str]) -> Pipeline:
    """Write the pipeline's configuration, and its sources of some days."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "lakejoin.yaml").write_text(CONFIGURATION)
    sources = (
        ("weather", ("station", "temp", "at"), WEATHER),
        ("departures", ("id", "station", "at"), DEPARTURES),
    )
    for name, columns, given in sources:
        (folder / name).mkdir(exist_ok=True)
        for day in days:
            rows = [dict(zip(columns, row, strict=True)) | {"op": "c"} for row in given[day]]
            for row in rows:
                row["at"] = None if row["at"] is None else f"2024-01-{row['at']}:00:00Z"
            text = "".join(json.dumps(row) + "\n" for row in rows)
            (folder / name / f"{day}.jsonl").write_text(text)
    return load(folder / "lakejoin.yaml")


@pytest.fixture(scope="module")
def first_day(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Pipeline:
    """Return a pipeline with one finished batch and input for the next."""
    pipeline = make_board(tmp_path_factory.mktemp("board") / "first", ["2024-01-01"])
    run(pipeline, spark)
    return make_board(pipeline.path.parent, ["2024-01-01", "2024-01-02"])


@pytest.fixture(scope="module")
def undisturbed(
    first_day: Pipeline, tmp_path_factory: pytest.TempPathFactory, spark: SparkSession
) -> Content:
    """Return what the lake holds after the second batch, and see that it makes all the commits it should."""
    pipeline = copy_of(first_day, tmp_path_factory.mktemp("undisturbed") / "board")
    with commits() as counted:
        run(pipeline, spark)
    assert len(counted.made) == COMMITS, counted.made
    counts = Journal(Lake(pipeline.lake)).published[-1]
    assert (
        counts.tables["weather"] | {"history": 1, "expired": 1, "quarantined": 1} == counts.tables["weather"]
    )
    assert counts.joins["at_time"] | {"late": 1, "released": 2, "waiting": 2} == counts.joins["at_time"]
    return content(pipeline, spark)


POINTS: list[tuple[When, int]] = [("before", 0), *[("after", number) for number in range(COMMITS)]]


@pytest.mark.parametrize(("when", "number"), POINTS)
def test_batch_cut_off_at_a_commit_ends_as_if_undisturbed(
    first_day: Pipeline, undisturbed: Content, when: When, number: int, tmp_path: Path, spark: SparkSession
) -> None:
    """No record is joined twice, lost, or late only because its batch was run again."""
    pipeline = copy_of(first_day, tmp_path / "board")
    with commits(number, when), pytest.raises(Crash):
        run(pipeline, spark)
    finished = when == "after" and number == COMMITS - 1
    assert run(pipeline, spark) == (0 if finished else 1)
    assert content(pipeline, spark) == undisturbed
    assert run(pipeline, spark) == 0


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
    """It joins each as of its time, and takes none for late; what waits goes on waiting."""
    pipeline = copy_of(first_day, tmp_path / "board")
    assert run(pipeline, spark) == 1
    added = CONFIGURATION + (
        "  added: {stream: departures, table: weather, foreign_key: [station], how: left, grace: 2 hours}\n"
    )
    (tmp_path / "board" / "lakejoin.yaml").write_text(added)
    pipeline = load(tmp_path / "board" / "lakejoin.yaml")

    assert run(pipeline, spark) == 1

    last = Journal(Lake(pipeline.lake)).published[-1]
    wanted = {"received": 6, "at_once": 1, "buffered": 5, "late": 0, "released": 3, "waiting": 2}
    assert last.kind == "bootstrap"
    assert last.joins["added"] | wanted == last.joins["added"]
    names = ("joins/added/joined", "joins/at_time/joined")
    found = [[row for row in content(pipeline, spark)[name] if '"id":1' in row] for name in names]
    assert [[json.loads(row)["right_temp"] for row in rows] for rows in found] == [[1], [1]]
