"""What a run reports to Dagster: which batch stands for which partition, also when the run fails."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from dagster import AssetKey, DagsterInstance, ExecuteInProcessResult
from deltalake import write_deltalake

from lakejoin.expectations.data_docs import DataDocs
from lakejoin.orchestration.checks.check_lake import Checked
from lakejoin.orchestration.config import load
from lakejoin.orchestration.defs.asset_checks import sample_table
from lakejoin.orchestration.defs.asset_keys import LakeAsset
from lakejoin.orchestration.defs.code_location import pipeline_definitions
from lakejoin.orchestration.defs.embedded_pipeline import EmbeddedPipeline
from lakejoin.orchestration.defs.materializations import Reports, split
from lakejoin.storage.errors import LakeBusy
from lakejoin.storage.lake.plan import Published
from recordings.tiny import DAYS, write_pipeline

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def published(batch: int, days: Sequence[str]) -> Published:
    """Return a finished batch of these days."""
    dates = tuple(date.fromisoformat(day) for day in days)
    return Published(batch, "batch", NOW, dates, {}, {}, {}, {}, {}, {})


def test_batches_beyond_the_target_are_reported_beside_the_outputs() -> None:
    """A day's last batch is the output's; its earlier ones, other days and undated batches come beside it."""
    batches = [published(1, []), published(2, ["2013-03-01"]), published(3, ["2013-03-02"])]
    batches.append(published(4, ["2013-03-02"]))
    outputs, rest = split(batches, ["2013-03-02", "2013-03-03"], partitioned=True)
    assert {partition: batch.batch for partition, batch in outputs.items()} == {"2013-03-02": 4}
    assert [(done.partition, done.batch.batch) for done in rest] == [
        (None, 1),
        ("2013-03-01", 2),
        ("2013-03-02", 3),
    ]


def test_batch_of_dates_is_the_one_materialisation_of_an_unpartitioned_pipeline() -> None:
    """Where assets have no partitions the last batch is the output and the others come beside it."""
    outputs, rest = split([published(1, []), published(2, [])], [None], partitioned=False)
    assert {partition: batch.batch for partition, batch in outputs.items()} == {None: 2}
    assert [(done.partition, done.batch.batch) for done in rest] == [(None, 1)]


def test_offending_rows_are_a_table() -> None:
    """Fields become columns; structs stay JSON, and what would act on a screen is escaped."""
    table = sample_table(
        ['{"primary_key": {"id": 1}, "note": "a|b\\nc"}', '{"primary_key": null, "note": 2}']
    )
    assert [column.name for column in table.schema.columns] == ["primary_key", "note"]
    assert [record.data for record in table.records] == [
        {"primary_key": '{"id": 1}', "note": "a|b\\nc"},
        {"primary_key": "null", "note": "2"},
    ]


def materialize(
    path: Path, tags: dict[str, str], instance: DagsterInstance | None = None
) -> ExecuteInProcessResult:
    """Run the pipeline's job with these tags."""
    job = pipeline_definitions(EmbeddedPipeline(load(path)), NOW).resolve_job_def("tiny_job")
    with nullcontext(instance) if instance else DagsterInstance.ephemeral() as remembered:
        return job.execute_in_process(instance=remembered, tags=tags, raise_on_error=False)


def failure(result: ExecuteInProcessResult) -> str:
    """Return what the failed step says."""
    (event,) = result.filter_events(lambda event: event.is_step_failure)
    data = event.step_failure_data
    return str(data.user_failure_data.description if data.user_failure_data else data.error)


@pytest.fixture
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs believe in a Spark session, which what replaces `run_batches` does not need."""
    monkeypatch.setattr("lakejoin.orchestration.defs.spark_resource.start_session", lambda **_: None)


def test_finished_batches_are_reported_although_a_later_one_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_spark: None
) -> None:
    """The first day is published, the second meets another run: the first shows, and the failure says why."""

    def run_batches(*_: Any, **__: Any) -> Iterator[Published]:
        yield published(1, DAYS[:1])
        raise LakeBusy("the lake is being written by process 1")

    monkeypatch.setattr("lakejoin.orchestration.defs.assets.run_batches", run_batches)
    result = materialize(write_pipeline(tmp_path), range_tags(DAYS[0], DAYS[1]))
    assert not result.success
    assert failure(result) == "LakeBusy: the lake is being written by process 1"
    events = result.get_asset_materialization_events()
    assert len(events) == 5
    assert {event.partition for event in events} == {DAYS[0]}


def test_run_without_partitions_says_to_choose_some(tmp_path: Path, no_spark: None) -> None:
    """A partitioned pipeline that is launched without a partition fails at once with a plain sentence."""
    result = materialize(write_pipeline(tmp_path), {})
    assert not result.success
    assert failure(result).startswith("The pipeline has daily partitions, and the run names none")


def test_run_of_a_single_partition_works_off_its_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_spark: None
) -> None:
    """The interface and `dagster asset materialize --partition` start one day otherwise than a range of days."""
    asked: list[Any] = []

    def run_batches(*_: Any, **options: Any) -> Iterator[Published]:
        asked.append(options["dates"])
        yield published(1, DAYS[1:2])

    monkeypatch.setattr("lakejoin.orchestration.defs.assets.run_batches", run_batches)
    result = materialize(write_pipeline(tmp_path), {"dagster/partition": DAYS[1]})
    assert result.success, failure(result)
    assert asked == [(date(2013, 3, 2), date(2013, 3, 2))]
    events = result.get_asset_materialization_events()
    assert {event.partition for event in events} == {DAYS[1]}
    assert {event.materialization.metadata["batch"].value for event in events} == {1}


@dataclass
class Steps:
    """What the runs of a test published, and how many last batches each of their check steps looked at."""

    published: list[Published] = field(default_factory=list)
    looked_at: list[int | None] = field(default_factory=list)
    meanwhile: list[Published] = field(default_factory=list)
    """What somebody else publishes while the next check step looks."""


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch, no_spark: None) -> Steps:
    """Let runs publish a batch a day without a lake, and fail at the third day."""
    found = Steps()

    def run_batches(*_: Any, dates: tuple[date, date], **__: Any) -> Iterator[Published]:
        for number, day in enumerate(DAYS, start=1):
            if number > len(found.published) and day <= dates[1].isoformat():
                if day == DAYS[2]:
                    raise LakeBusy("the lake is being written by process 1")
                found.published.append(published(number, [day]))
                yield found.published[-1]

    def check_lake(*_: Any, batches: int | None, **__: Any) -> Checked:
        found.looked_at.append(batches)
        found.published += found.meanwhile
        found.meanwhile = []
        since = None if batches is None else len(found.published) - batches
        return Checked({}, DataDocs(Path()), since, len(found.published), [])

    monkeypatch.setattr("lakejoin.orchestration.defs.assets.run_batches", run_batches)
    monkeypatch.setattr("lakejoin.orchestration.defs.asset_checks.check_lake", check_lake)
    monkeypatch.setattr("lakejoin.orchestration.defs.asset_checks.Journal", lambda lake: found)
    monkeypatch.setattr("lakejoin.orchestration.defs.asset_checks.judged_by_gates", lambda *_: set())
    return found


def test_batches_of_a_failed_run_are_checked_by_the_next_one(tmp_path: Path, steps: Steps) -> None:
    """They were reported, and no check step of that run followed."""
    path, day = write_pipeline(tmp_path), {"dagster/partition": DAYS[1]}
    with DagsterInstance.ephemeral() as instance:
        assert not materialize(path, range_tags(DAYS[0], DAYS[2]), instance).success
        assert steps.looked_at == []
        assert materialize(path, day, instance).success
        assert materialize(path, day, instance).success
    assert steps.looked_at == [2, 1]


def test_batches_of_a_killed_run_are_checked_by_the_next_one(tmp_path: Path, steps: Steps) -> None:
    """Nothing told Dagster of them: the checks begin after what they looked at last."""
    path, day = write_pipeline(tmp_path), {"dagster/partition": DAYS[0]}
    with DagsterInstance.ephemeral() as instance:
        assert materialize(path, day, instance).success
        steps.published += [published(2, DAYS[1:2]), published(3, DAYS[2:])]
        assert materialize(path, day, instance).success
    assert steps.looked_at == [1, 2]


def test_batch_that_was_pushed_out_of_sight_is_checked_by_the_next_run(tmp_path: Path, steps: Steps) -> None:
    """A check counts from the last batch, and another one was published while it began."""
    path, day = write_pipeline(tmp_path), {"dagster/partition": DAYS[0]}
    steps.meanwhile = [published(2, DAYS[1:2])]
    with DagsterInstance.ephemeral() as instance:
        assert materialize(path, day, instance).success
        assert materialize(path, day, instance).success
    assert steps.looked_at == [1, 2]


def test_new_join_is_checked_from_its_first_batch_on(tmp_path: Path, steps: Steps) -> None:
    """Its checks have seen nothing yet, which is no reason to look at what the others have seen."""
    path, day = write_pipeline(tmp_path), {"dagster/partition": DAYS[0]}
    with DagsterInstance.ephemeral() as instance:
        assert materialize(path, day, instance).success
        assert materialize(path, {"dagster/partition": DAYS[1]}, instance).success
        joins = "joins:\n  again: {left: flights, right: planes, foreign_key: [tailnum], how: inner}\n"
        path.write_text(path.read_text().replace("joins:\n", joins))
        assert materialize(path, {"dagster/partition": DAYS[1]}, instance).success
    assert steps.looked_at == [1, 1, 1]


def test_quarantined_records_warn_and_fail_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: Steps
) -> None:
    """Only of the batches that the check has not looked at: it would warn for ever."""
    path, day = write_pipeline(tmp_path), {"dagster/partition": DAYS[0]}
    monkeypatch.setattr("lakejoin.orchestration.defs.quarantine_checks.Journal", lambda lake: steps)
    monkeypatch.setattr(
        "lakejoin.orchestration.defs.quarantine_checks.open_counts",
        lambda *_: {"planes": {"null_key": 3, "late": 1}},
    )
    bad = replace(published(2, DAYS[1:2]), tables={"planes": {"quarantined": 3}})
    with DagsterInstance.ephemeral() as instance:
        assert warnings(materialize(path, day, instance)) == {}
        steps.published.append(bad)
        result = materialize(path, day, instance)
        assert result.success
        assert warnings(result) == {"planes": ("3 records quarantined since batch 2.", 3)}
        steps.published.append(published(3, DAYS[2:]))
        assert warnings(materialize(path, day, instance)) == {}


def test_days_that_are_done_are_not_looked_at_again(tmp_path: Path, steps: Steps) -> None:
    """What an earlier run did is reported with its batch, which has had its checks."""
    path = write_pipeline(tmp_path)
    (tmp_path / "lake").mkdir()
    with DagsterInstance.ephemeral() as instance:
        for day in DAYS[:2]:
            assert materialize(path, {"dagster/partition": day}, instance).success
        assert materialize(path, {"dagster/partition": DAYS[0]}, instance).success
    assert steps.looked_at == [1, 1, 1]


def test_rows_of_a_version_that_is_gone_are_not_told(tmp_path: Path) -> None:
    """A day that was done long ago is reported all the same."""
    pipeline = load(write_pipeline(tmp_path))
    joined = Path(pipeline.lake) / "joins" / "j" / "joined"
    write_deltalake(str(joined), pa.table({"a": [1]}))
    old = replace(published(1, DAYS[:1]), versions={"joins/j/joined": 0}, joins={"j": {}})
    asset = LakeAsset(AssetKey("joined"), "joined", "j", "joins/j/joined")
    assert Reports(pipeline, [old]).standing(asset, None)["dagster/row_count"] == 1
    for file in (joined / "_delta_log").iterdir():
        file.unlink()
    assert "dagster/row_count" not in Reports(pipeline, [old]).standing(asset, None)


def warnings(result: ExecuteInProcessResult) -> dict[str, tuple[str, object]]:
    """What checks of records say that did not pass, and how many records they say are in quarantine still."""
    return {
        check.asset_key.path[-1]: (
            (check.description or "").partition(" See")[0],
            check.metadata["in_quarantine"].value,
        )
        for check in result.get_asset_check_evaluations()
        if check.check_name == "records_accepted" and not check.passed
    }


def range_tags(first: str, last: str) -> dict[str, str]:
    """Return the tags of a run over a range of partitions."""
    prefix = "dagster/asset_partition_range"
    return {f"{prefix}_start": first, f"{prefix}_end": last}
