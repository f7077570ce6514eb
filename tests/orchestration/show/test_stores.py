"""`show` over stores: the same rows as Spark's, read without a JVM."""

import csv
import io
import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from lakejoin.orchestration.cli import app, options
from lakejoin.orchestration.config import Pipeline, load
from lakejoin.orchestration.demo.example import Example
from lakejoin.orchestration.lake_state.fold_progress import finished_state
from lakejoin.orchestration.lake_state.published_snapshot import published_snapshot
from lakejoin.orchestration.show.frame_view import View
from lakejoin.orchestration.show.key_ranges import Range
from lakejoin.orchestration.show.store_view import StoredTable, StoreView, open_view
from lakejoin.orchestration.show.stores import stored_tables
from lakejoin.orchestration.show.text_formats import lines
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.lake.plan import Plan
from lakejoin.storage.stores.pipeline.tables import joined_store, rows_store, subscription_store

pytestmark = pytest.mark.spark

Rows = list[dict[str, str]]


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail whoever asks for a session."""

    def refuse(_: object) -> None:
        pytest.fail("a session was asked for")

    monkeypatch.setattr(options, "open_session", refuse)


def show(example: Example, *arguments: str) -> Result:
    """Run the command on the tiny lake."""
    return CliRunner().invoke(app, ["show", str(example.pipeline.path), *arguments])


def shown(example: Example, *arguments: str) -> Rows:
    """Rows that the command shows as csv."""
    result = show(example, *arguments, "--format", "csv")
    assert result.exit_code == 0, result.output
    return list(csv.DictReader(io.StringIO(result.stdout, newline="")))


def test_every_store_shows_what_spark_shows(tiny: Example, view: Callable[..., View]) -> None:
    """Each table that is kept by key, two also at an earlier batch: to the character, in both directions."""
    lake = Lake(tiny.pipeline.lake)
    tables = stored_tables(tiny.pipeline)
    assert {
        "flights",
        "flights.rows",
        "flights_with_planes",
        "flights_with_planes.subscription_store",
    } <= set(tables)
    for name, table in tables.items():
        for batch in (1, 3) if name in ("flights.rows", "flights_with_planes") else (3,):
            snapshot, spark_view = published_snapshot(Journal(lake), batch), view(name, batch)
            expected = list(lines(spark_view.shown(internal=True), "csv", spark_view.structs))
            ours = _view(table, lake, snapshot, Range())
            assert list(ours.lines("csv", None)) == expected, name
            backwards = _view(table, lake, snapshot, Range(reverse=True))
            assert list(backwards.lines("csv", None)) == [expected[0], *expected[:0:-1]]
            assert list(ours.lines("csv", 2)) == expected[:3]


@pytest.mark.usefixtures("without_spark", "tiny_days")
def test_key_ranges_and_the_last_rows_need_no_session(tiny: Example, read: Callable[[str], Rows]) -> None:
    """One key, from one to another, the last ones, in the joined table and of a declared one."""
    flights = [row["flight_id"] for row in read("flights_with_planes")]
    some = flights[5]
    assert [row["flight_id"] for row in shown(tiny, "flights_with_planes", "--key", some)] == [some]
    ranged = shown(tiny, "flights", "--key-from", flights[3], "--key-to", flights[6])
    assert [row["flight_id"] for row in ranged] == flights[3:7]
    last = shown(tiny, "flights", "--reverse", "--limit", "5")
    assert [row["flight_id"] for row in last] == flights[:-6:-1]
    as_table = show(tiny, "flights", "--reverse", "--limit", "1").stdout.splitlines()
    assert as_table[1].split()[0] == flights[-1]
    assert as_table[-1].startswith("The first 1 rows of flights")


@pytest.mark.usefixtures("without_spark", "tiny_days")
def test_prefix_finds_text_and_subscribers_of_a_foreign_key(
    tiny: Example, read: Callable[[str], Rows]
) -> None:
    """Of a key of one text its beginning; of a CombinedKey the foreign key."""
    planes = [row["tailnum"] for row in read("planes") if row["tailnum"].startswith("N1")]
    assert [row["tailnum"] for row in shown(tiny, "planes", "--prefix", "N1")] == planes
    subscribed = read("flights_with_planes.subscription_store")
    plane = subscribed[0]["foreign_key"]
    found = shown(tiny, "flights_with_planes.subscription_store", "--prefix", plane)
    assert found
    assert [row["primary_key"] for row in found] == [
        row["primary_key"] for row in subscribed if row["foreign_key"] == plane
    ]


@pytest.mark.usefixtures("without_spark", "tiny_days")
def test_times_choose_by_event_time(tiny: Example, read: Callable[[str], Rows]) -> None:
    """Inclusive, over all keys, as jsonl."""
    times = sorted({row["event_time"] for row in read("flights")})
    low, high = times[2], times[-3]
    expected = [row["flight_id"] for row in read("flights") if low <= row["event_time"] <= high]
    result = show(tiny, "flights", "--time-from", low, "--time-to", high, "--format", "jsonl")
    assert [str(json.loads(line)["flight_id"]) for line in result.stdout.splitlines()] == expected


@pytest.mark.usefixtures("without_spark", "tiny_days")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["flights.changes", "--reverse"], "flights.changes is a log"),
        (["flights", "--prefix", "1", "--where", "true"], "cannot be given with --where"),
        (["flights", "--key-from", "x"], "flight_id is bigint"),
        (["planes.rows", "--as-of-batch", "9", "--reverse"], "finished batches: 1 to 3"),
    ],
)
def test_what_a_store_cannot_answer_is_refused_at_once(
    tiny: Example, arguments: list[str], message: str
) -> None:
    """With exit code 2 and a reason, before any session."""
    result = show(tiny, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.usefixtures("tiny_days")
def test_tables_open_as_stores_in_python(tiny: Example, read: Callable[[str], Rows]) -> None:
    """Rows, subscriptions and result by their keys, for reading only."""
    pipeline, lake = tiny.pipeline, Lake(tiny.pipeline.lake)
    snapshot, join = published_snapshot(Journal(lake)), pipeline.join_spec("flights_with_planes")
    planes, joined = (
        rows_store(lake, snapshot, pipeline.tables["planes"].spec),
        joined_store(lake, snapshot, join),
    )
    assert [row.key for row in planes.all()] == [row["tailnum"] for row in read("planes")]
    first = read("flights_with_planes")[0]
    assert str(joined.get(int(first["flight_id"]))["tailnum"]) == first["tailnum"]
    subscribed = read("flights_with_planes.subscription_store")[0]
    found = next(subscription_store(lake, snapshot, join).prefix_scan((subscribed["foreign_key"],)))
    assert found.key == (subscribed["foreign_key"], int(subscribed["primary_key"]))


@pytest.mark.slow
@pytest.mark.usefixtures("tiny_days")
def test_maintained_lake_shows_the_same(
    tiny: Example, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After folds and compactions every store reads as before; only old tombstones are gone."""
    monkeypatch.setattr(options, "open_session", lambda _, **__: spark)
    shutil.copytree(Path(tiny.pipeline.path).parent, tmp_path / "tiny")
    pipeline = load(tmp_path / "tiny" / "lakejoin.yaml")
    before = _everything(pipeline)
    result = CliRunner().invoke(app, ["maintain", str(pipeline.path), "--all"])
    assert result.exit_code == 0, result.output
    assert _everything(pipeline) == before


def _everything(pipeline: Pipeline) -> dict[str, list[str]]:
    lake = Lake(pipeline.lake)
    snapshot = finished_state(pipeline, lake, Journal(lake), datetime.now(UTC))
    return {
        name: list(_view(table, lake, snapshot, Range()).lines("jsonl", None))
        for name, table in stored_tables(pipeline).items()
        if not name.endswith(".rows")
    }


def _view(table: StoredTable, lake: Lake, snapshot: Plan, asked: Range) -> StoreView:
    return open_view(table, lake, snapshot, asked, internal=True)


@pytest.mark.usefixtures("tiny_days")
def test_file_that_cannot_be_written_is_told(tiny: Example, tmp_path: Path) -> None:
    """The directory is not there."""
    result = show(tiny, "flights", "--output", str(tmp_path / "none" / "rows.csv"))
    assert result.exit_code == 2
    assert "rows.csv: cannot be written (No such file or directory)" in result.output.replace("\n", "")
