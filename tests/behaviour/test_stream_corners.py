"""Streams whose joins come and go, whose batches are given up, and whose records come twice within a microsecond."""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from faults.crashing import Crash, commits
from faults.shop import make_pipeline, run, write_lines
from lakejoin.orchestration.checks.check_lake import check_lake
from lakejoin.orchestration.config import Pipeline, load
from lakejoin.orchestration.lake_state.published_snapshot import published_snapshot
from lakejoin.orchestration.runs.abandon import abandon
from lakejoin.orchestration.runs.retry_quarantine import in_quarantine, retry
from lakejoin.storage.errors import SourceNotFound
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake, joined_of, records_of
from lakejoin.storage.spark.kept_frames import Frames
from lakejoin.storage.state.pinned_state import State
from lakejoin.transforms.model.schemas import FOREIGN_KEY
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.stream_join.table_join import ROUTE

pytestmark = pytest.mark.spark

TEXT = """\
name: board
lake: ./lake
tables:
  prices:
    source: {format: jsonl, path: "prices/{date}.jsonl"}
    columns: {code: string, price: int, at: timestamp}
    key: [code]
    event_time: at
    versioned: {history_retention: 10 days}
streams:
  clicks:
    source: {format: jsonl, path: "clicks/{date}.jsonl"}
    columns: {id: bigint, code: string, status: string, at: timestamp}
    key: [id]
    sequence: [at]
    event_time: at
    where: "status = 'sold'"
joins:
  short: {stream: clicks, table: prices, foreign_key: [code], how: left, grace: 1 hour}
"""
LONG = "  long: {stream: clicks, table: prices, foreign_key: [code], how: left, grace: 2 hours}\n"
VIEWS = """\
  views:
    source: {format: jsonl, path: "views/{date}.jsonl"}
    columns: {id: bigint, code: string, at: timestamp}
    key: [id]
    event_time: at
"""
PRICE = {"op": "c", "code": "a", "price": 1, "at": "2024-01-01T00:00:00Z"}


def click(number: int, time: str, status: str = "sold") -> dict[str, object]:
    """A record of the stream."""
    return {"op": "c", "id": number, "code": "a", "status": status, "at": f"2024-01-01T{time}Z"}


def declare(folder: Path, day: int, *clicks: dict[str, object], text: str = TEXT) -> Pipeline:
    """Write a pipeline and a day of its stream."""
    write_lines(folder / "prices" / "2024-01-01.jsonl", [PRICE])
    write_lines(folder / "clicks" / f"2024-01-{day:02}.jsonl", clicks)
    return make_pipeline(folder, text)


def counted(pipeline: Pipeline, join: str, count: str) -> int:
    """A count of a join in the last batch."""
    return Journal(Lake(pipeline.lake)).last.joins[join][count]


def joined(pipeline: Pipeline, spark: SparkSession, join: str) -> list[int]:
    """Which records a join has had so far, each as often as it did."""
    rows = spark.read.format("delta").load(Lake(pipeline.lake).path(joined_of(join)))
    return sorted(row["id"] for row in rows.where("right_price = 1").select("id").collect())


@pytest.mark.slow
def test_join_that_is_added_after_a_flush_has_waiting_records_of_its_own(
    tmp_path: Path, spark: SparkSession
) -> None:
    """And it takes those that the joins before it had dropped as late."""
    run(declare(tmp_path, 1, click(1, "10:30:00"), click(2, "12:00:00"), click(3, "09:00:00")), spark)
    run(load(tmp_path / "lakejoin.yaml"), spark, flush=True)
    pipeline = declare(
        tmp_path, 1, click(1, "10:30:00"), click(2, "12:00:00"), click(3, "09:00:00"), text=TEXT + LONG
    )
    run(pipeline, spark)
    assert joined(pipeline, spark, "long") == [3]
    pipeline = declare(tmp_path, 2, click(4, "15:00:00"), text=TEXT + LONG)
    run(pipeline, spark)
    assert joined(pipeline, spark, "long") == [1, 2, 3]
    assert joined(pipeline, spark, "short") == [1, 2]
    run(pipeline, spark, flush=True)
    assert joined(pipeline, spark, "long") == [1, 2, 3, 4]
    assert joined(pipeline, spark, "short") == [1, 2, 4]


@pytest.mark.slow
def test_join_that_begins_anew_has_a_stream_time_of_its_own(tmp_path: Path, spark: SparkSession) -> None:
    """Its name had another one before, of a stream that was hours ahead; and what was late for that is not for it."""
    pipeline = declare(tmp_path, 1, click(1, "10:00:00"), click(3, "23:00:00"), click(2, "11:00:00"))
    run(pipeline, spark)
    clicks = Journal(Lake(pipeline.lake)).last.tables["clicks"]
    assert (counted(pipeline, "short", "late"), clicks["late"], clicks["applied"]) == (1, 1, 2)
    without, _, _ = TEXT.partition("joins:")
    run(declare(tmp_path, 2, click(4, "10:00:00", "open"), text=without), spark)
    shutil.rmtree(tmp_path / "lake" / "joins" / "short")
    opened = TEXT.replace("joins:\n", VIEWS + "joins:\n").replace("stream: clicks", "stream: views")
    write_lines(tmp_path / "views" / "2024-01-01.jsonl", [click(7, "01:00:00"), click(8, "02:30:00")])
    pipeline = declare(tmp_path, 2, click(4, "10:00:00", "open"), text=opened)

    run(pipeline, spark)

    write_lines(tmp_path / "views" / "2024-01-02.jsonl", [click(9, "02:00:00")])
    run(pipeline, spark)
    assert (counted(pipeline, "short", "late"), counted(pipeline, "short", "waiting")) == (0, 2)
    assert joined(pipeline, spark, "short") == [7]


@pytest.mark.slow
def test_join_that_begins_anew_is_not_held_to_what_was_late_before(
    tmp_path: Path, spark: SparkSession
) -> None:
    """It takes every record that its stream ever had; the rules know."""
    pipeline = declare(tmp_path, 1, click(1, "10:00:00"), click(3, "15:00:00"), click(2, "11:00:00"))
    run(pipeline, spark)
    assert counted(pipeline, "short", "late") == 1
    run(declare(tmp_path, 2, click(4, "16:00:00"), text=TEXT.partition("joins:")[0]), spark)
    shutil.rmtree(tmp_path / "lake" / "joins" / "short")
    pipeline = declare(tmp_path, 2, click(4, "16:00:00"))
    run(pipeline, spark)
    assert joined(pipeline, spark, "short") == [1, 2, 3]
    assert check_lake(pipeline, spark, batches=None).passed


@pytest.mark.bad_input(10)
def test_record_of_a_far_future_does_not_move_the_time_of_its_stream(
    tmp_path: Path, spark: SparkSession
) -> None:
    """It is quarantined: what waits for its grace goes on waiting, and what comes next is not late."""
    far = click(2, "00:00:00") | {"at": "9999-12-31T23:59:59Z"}
    run(declare(tmp_path, 1, click(1, "10:00:00"), far, click(3, "10:30:00")), spark)
    pipeline = declare(tmp_path, 2, click(4, "10:15:00"))
    run(pipeline, spark)
    quarantined = [batch.tables["clicks"]["quarantined"] for batch in Journal(Lake(pipeline.lake)).published]
    assert quarantined == [1, 0]
    assert (counted(pipeline, "short", "late"), counted(pipeline, "short", "waiting")) == (0, 3)


@pytest.mark.slow
def test_record_of_before_the_history_meets_nothing_but_a_last_version(
    tmp_path: Path, spark: SparkSession
) -> None:
    """The one that was valid at its time is still there, but may be gone once maintenance has looked."""
    later = [
        PRICE | {"price": 2, "at": "2024-01-02T00:00:00Z"},
        PRICE | {"code": "b", "at": "2024-01-02T12:00:00Z"},
    ]
    write_lines(tmp_path / "prices" / "2024-01-02.jsonl", later)
    short = TEXT.replace("10 days", "6 hours")
    run(declare(tmp_path, 1, click(2, "00:00:00", "open"), text=short), spark)
    pipeline = declare(tmp_path, 3, click(1, "12:00:00"), text=short)
    run(pipeline, spark)
    run(pipeline, spark, flush=True)
    assert (counted(pipeline, "short", "released"), joined(pipeline, spark, "short")) == (1, [])


def test_record_that_comes_again_is_known_to_the_microsecond(tmp_path: Path, spark: SparkSession) -> None:
    """Delta's statistics, by which files are passed over, say less."""
    run(declare(tmp_path, 1, click(1, "10:00:00"), click(2, "12:00:00.123456")), spark)
    pipeline = declare(tmp_path, 2, click(2, "12:00:00.123456"), click(3, "16:00:00.5"))
    run(pipeline, spark)
    assert Journal(Lake(pipeline.lake)).last.tables["clicks"]["duplicate"] == 1
    assert joined(pipeline, spark, "short") == [1, 2]


@pytest.mark.slow
@pytest.mark.bad_input(9)
@pytest.mark.bad_input(11)
def test_times_of_the_year_1_are_times_like_any_other(tmp_path: Path, spark: SparkSession) -> None:
    """A record of then waits, leaves, is a duplicate or comes late; a version of then is the history, or expired."""
    old = {"at": "0001-01-01T00:00:00Z"}
    text = TEXT + LONG.replace("long:", "large:").replace("2 hours", "10 days")
    declare(tmp_path, 1, click(1, "00:00:00") | old, text=text)
    write_lines(tmp_path / "prices" / "2024-01-01.jsonl", [PRICE | old])
    pipeline = load(tmp_path / "lakejoin.yaml")
    run(pipeline, spark)
    assert counted(pipeline, "short", "waiting") == 1
    write_lines(tmp_path / "prices" / "2024-01-02.jsonl", [PRICE | {"price": 2}])
    write_lines(tmp_path / "clicks" / "2024-01-02.jsonl", [click(1, "00:00:00") | old, click(2, "10:00:00")])
    run(pipeline, spark)
    assert Journal(Lake(pipeline.lake)).last.tables["clicks"]["duplicate"] == 1
    assert joined(pipeline, spark, "short") == joined(pipeline, spark, "large") == [1]
    write_lines(tmp_path / "prices" / "2024-01-03.jsonl", [PRICE | old | {"price": 3}])
    write_lines(tmp_path / "clicks" / "2024-01-03.jsonl", [click(3, "00:00:00") | old])
    run(pipeline, spark)
    assert counted(pipeline, "short", "late") == counted(pipeline, "large", "late") == 1
    assert Journal(Lake(pipeline.lake)).last.tables["prices"]["expired"] == 1
    assert check_lake(pipeline, spark, batches=None).passed


@pytest.mark.slow
def test_earlier_records_are_looked_for_from_the_oldest_event_of_a_batch_on(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the condition leaves out repeats nothing, whatever its time; where it leaves out all, nothing is read."""
    run(declare(tmp_path, 1, click(1, "10:00:00")), spark)
    looked: list[object] = []
    read = State.stream_records

    def watched(state: State, stream: TableSpec, **which: object) -> DataFrame:
        if "after" not in which:
            looked.append(which["later"])
        return read(state, stream, **which)

    monkeypatch.setattr(State, "stream_records", watched)
    ancient = click(2, "00:00:00", "planned") | {"at": "1999-01-01T00:00:00Z"}
    run(declare(tmp_path, 2, ancient, click(3, "12:00:00")), spark)
    assert looked == [datetime(2024, 1, 1, 11, 59, 59, 999_999, tzinfo=UTC)]
    run(declare(tmp_path, 3, ancient | {"id": 4}), spark)
    assert len(looked) == 1


@pytest.mark.slow
def test_record_that_waits_leaves_to_the_microsecond(tmp_path: Path, spark: SparkSession) -> None:
    """The last of its file, a part of a millisecond behind the stream's time less grace."""
    run(declare(tmp_path, 1, click(1, "10:00:00.123900")), spark)
    run(declare(tmp_path, 2, click(2, "11:00:00.123500")), spark)
    pipeline = declare(tmp_path, 3, click(3, "14:00:00"))
    run(pipeline, spark)
    assert joined(pipeline, spark, "short") == [1, 2]


@pytest.mark.slow
def test_record_that_the_condition_left_out_makes_no_duplicate(tmp_path: Path, spark: SparkSession) -> None:
    """It was never an event of the stream, in the same batch or in one before."""
    run(declare(tmp_path, 1, click(1, "10:00:00", "planned")), spark)
    pipeline = declare(tmp_path, 2, click(1, "10:00:00"), click(2, "16:00:00"))
    run(pipeline, spark)
    assert joined(pipeline, spark, "short") == [1]


@pytest.mark.slow
def test_what_waits_outlives_a_batch_that_was_given_up(tmp_path: Path, spark: SparkSession) -> None:
    """The counts still say that it waits, so a flush releases it."""
    run(declare(tmp_path, 1, click(1, "10:00:00")), spark)
    pipeline = declare(tmp_path, 2, click(2, "10:10:00"))
    with commits(0), pytest.raises(Crash):
        run(pipeline, spark)
    (tmp_path / "clicks" / "2024-01-02.jsonl").unlink()
    with pytest.raises(SourceNotFound):
        run(pipeline, spark)
    list(abandon(pipeline, lambda: spark))
    assert run(pipeline, spark, flush=True) == 1
    assert joined(pipeline, spark, "short") == [1]


def test_condition_that_fails_on_a_record_is_corrected(tmp_path: Path, spark: SparkSession) -> None:
    """Its record waits in quarantine while the others go on; by the corrected condition it is no event."""
    failing = TEXT.replace("status = 'sold'", "10 / id > 2")
    pipeline = declare(
        tmp_path, 1, click(0, "10:30:00"), click(4, "10:40:00"), click(9, "15:00:00"), text=failing
    )
    assert run(pipeline, spark) == 1
    [waiting] = in_quarantine(pipeline, spark, ["clicks"]).collect()
    assert (waiting["reason"], waiting["line"]) == ("expression_failed", 1)
    assert "where of clicks: 10 / id > 2 " in waiting["detail"]
    assert "[DIVIDE_BY_ZERO]" in waiting["detail"]
    pipeline = make_pipeline(tmp_path, failing.replace("10 / id", "try_divide(10, id)"))
    assert len(list(retry(pipeline, lambda: spark, ["clicks"]))) == 1
    assert in_quarantine(pipeline, spark, ["clicks"]).count() == 0
    run(pipeline, spark, flush=True)
    assert joined(pipeline, spark, "short") == [4]


def test_record_without_a_time_keeps_no_file_from_being_passed_over(
    tmp_path: Path, spark: SparkSession
) -> None:
    """It is no event of the stream, and has no time in its log either."""
    text = TEXT.replace("    sequence: [at]\n", "")
    timeless = [click(2, "00:00:00", "planned") | {"at": None}]
    run(declare(tmp_path, 1, click(1, "10:00:00"), *timeless, text=text), spark)
    pipeline = declare(tmp_path, 2, *timeless, text=text)
    run(pipeline, spark)
    lake, stream = Lake(pipeline.lake), pipeline.streams["clicks"].spec
    state = State(spark, lake, published_snapshot(Journal(lake)))
    hour = datetime(2024, 1, 1, 10, tzinfo=UTC)
    found = {
        later: sorted(row["id"] for row in state.stream_records(stream, later=later).select("id").collect())
        for later in (None, hour, hour + timedelta(hours=1))
    }
    assert found == {None: [1, 2, 2], hour: [1, 2], hour + timedelta(hours=1): []}
    log = spark.read.format("delta").load(lake.path(records_of("clicks")))
    assert log.where("_lj_time IS NULL").count() == 2


@pytest.mark.slow
def test_batch_keeps_of_a_buffer_what_leaves_it(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits on is counted without being read; the checks find where that count is not what the buffer holds."""
    first = [click(1, "10:00:00"), click(2, "10:10:00"), click(3, "10:20:00")]
    run(declare(tmp_path, 1, *first), spark)
    kept: list[int] = []
    keep = Frames.keep

    def watched(frames: Frames, frame: DataFrame) -> DataFrame:
        if FOREIGN_KEY in frame.columns and ROUTE not in frame.columns:
            kept.append(frame.count())
        return keep(frames, frame)

    pipeline = declare(tmp_path, 2, click(4, "11:05:00"))
    with monkeypatch.context() as patch:
        patch.setattr(Frames, "keep", watched)
        run(pipeline, spark)
    assert set(kept) == {1}
    counts = ("buffered", "released", "waiting")
    assert [counted(pipeline, "short", count) for count in counts] == [1, 1, 3]
    assert joined(pipeline, spark, "short") == [1]
    assert check_lake(pipeline, spark, batches=None).passed
    declare(tmp_path, 3, click(5, "11:05:00"))
    monkeypatch.setattr("lakejoin.orchestration.batch.streams.stream_join_batch.waited", lambda *_: 2)
    run(pipeline, spark)
    checked = check_lake(pipeline, spark, batches=None)
    failed = [result.rule for results in checked.results.values() for result in results if not result.success]
    assert failed == ["counts_add_up"]


@pytest.mark.parametrize("kind", ["flush", "bootstrap"])
def test_batch_that_takes_many_earlier_records_goes_on_as_a_large_one(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """It reads no source records, but the buffer, or all that its stream ever had."""
    records = [click(number, f"10:{number:02}:00") for number in range(6)]
    run(declare(tmp_path, 1, *records), spark)
    grown: list[Frames] = []
    grow = Frames.grow

    def watched(frames: Frames) -> None:
        grown.append(frames)
        grow(frames)

    monkeypatch.setattr("lakejoin.storage.spark.kept_frames.SMALL", 5)
    monkeypatch.setattr(Frames, "grow", watched)
    if kind == "flush":
        run(load(tmp_path / "lakejoin.yaml"), spark, flush=True)
        assert joined(load(tmp_path / "lakejoin.yaml"), spark, "short") == list(range(6))
    else:
        pipeline = declare(tmp_path, 1, *records, text=TEXT + LONG)
        run(pipeline, spark)
        assert counted(pipeline, "long", "waiting") == 6
    assert grown
