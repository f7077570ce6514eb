"""Runs of the tiny recording through Dagster: a backfill, its repetition, a selection, a check that fails."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from dagster import (
    AssetCheckEvaluation,
    AssetKey,
    DagsterInstance,
    ExecuteInProcessResult,
    SensorResult,
    build_sensor_context,
)
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from lakejoin.orchestration.config import Pipeline, load
from lakejoin.orchestration.defs.assets import op_name
from lakejoin.orchestration.defs.code_location import pipeline_definitions
from lakejoin.orchestration.defs.embedded_pipeline import EmbeddedPipeline
from lakejoin.orchestration.lake_state.inventory import state_tables
from lakejoin.orchestration.runs.run import run_batches
from lakejoin.storage.errors import LakeBusy
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import PLAN, PUBLISHED, Lake, joined_of
from lakejoin.storage.lake.lock import writing
from lakejoin.storage.lake.plan import Published
from recordings.tiny import DAYS, write_pipeline

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ASSETS = {
    "flights",
    "planes",
    "flights_with_planes/flights_with_planes_subscription_log",
    "flights_with_planes/flights_with_planes_response_log",
    "flights_with_planes",
}


@dataclass(frozen=True)
class Project:
    """A pipeline of its own, and an instance of Dagster that remembers its runs."""

    path: Path
    instance: DagsterInstance

    @property
    def pipeline(self) -> Pipeline:
        """The configuration."""
        return load(self.path)

    @property
    def lake(self) -> Lake:
        """Where the pipeline's tables are."""
        return Lake(self.pipeline.lake)

    def versions(self) -> Mapping[str, int]:
        """Version of every table of the lake."""
        return self.lake.versions([PLAN, PUBLISHED, *state_tables(self.pipeline)])

    def run(self, first: str, last: str, *assets: str, **options: object) -> ExecuteInProcessResult:
        """Run the job over a range of days, for all assets or some; `options`: those of the batches."""
        job = pipeline_definitions(EmbeddedPipeline(self.pipeline), datetime.now(UTC)).resolve_job_def(
            "tiny_job"
        )
        prefix = "dagster/asset_partition_range"
        return job.execute_in_process(
            instance=self.instance,
            tags={f"{prefix}_start": first, f"{prefix}_end": last},
            asset_selection=[AssetKey(["tiny", *name.split("/")]) for name in assets] or None,
            run_config={"ops": {op_name(self.pipeline): {"config": options}}},
            raise_on_error=False,
        )

    def check(self, asset: str) -> ExecuteInProcessResult:
        """Run the checks of an asset alone, as its page in Dagster does."""
        job = pipeline_definitions(EmbeddedPipeline(self.pipeline), datetime.now(UTC)).resolve_job_def(
            "tiny_job"
        )
        keys = [
            key
            for key in job.asset_layer.asset_graph.asset_check_keys
            if key.asset_key.path == ["tiny", asset]
        ]
        return job.get_subset(asset_check_selection=set(keys), asset_selection=set()).execute_in_process(
            instance=self.instance, raise_on_error=False
        )

    def lose_row(self, spark: SparkSession) -> None:
        """Delete a joined row as a mistake of ours would: a commit by hand, of no batch, would stop the next run."""
        settings = {"AppId": Journal(self.lake).application("mistake"), "Version": "1"}
        for name, value in settings.items():
            spark.conf.set(f"spark.databricks.delta.write.txn{name}", value)
        # its plane is in no file, so that no later day repairs the row
        DeltaTable.forPath(spark, self.lake.path(joined_of("flights_with_planes"))).delete("flight_id = 110")
        for name in settings:
            spark.conf.unset(f"spark.databricks.delta.write.txn{name}")


Reported = dict[tuple[str, str | None], Mapping[str, Any]]


def reported(result: ExecuteInProcessResult) -> Reported:
    """Return the metadata of each materialisation of a run, by asset and partition."""
    found: Reported = {}
    for event in result.get_asset_materialization_events():
        key = ("/".join(event.materialization.asset_key.path[1:]), event.partition)
        assert key not in found, "each partition of an asset is materialised once"
        found[key] = {name: value.value for name, value in event.materialization.metadata.items()}
    return found


def evaluations(result: ExecuteInProcessResult) -> dict[tuple[str, str], AssetCheckEvaluation]:
    """Return what the checks of a run found, by asset and rule."""
    return {
        (check.asset_key.path[-1], check.check_name): check for check in result.get_asset_check_evaluations()
    }


def failure(result: ExecuteInProcessResult) -> str:
    """Return what the failed step says."""
    event = next(event for event in result.all_events if event.is_step_failure)
    data = event.step_failure_data
    return str(data.user_failure_data.description if data.user_failure_data else data.error)


@dataclass(frozen=True)
class History:
    """Six runs of one pipeline, in their order."""

    project: Project
    selection: ExecuteInProcessResult
    """Of the joined table alone, over the first day."""
    backfill: ExecuteInProcessResult
    """Of everything, over two days."""
    repetition: ExecuteInProcessResult
    """Of the same again."""
    one_again: ExecuteInProcessResult
    """Of one asset that is done, over the second day."""
    damaged: ExecuteInProcessResult
    """Of all three days, after a row of the first was lost from the joined table behind our back."""
    checks_alone: ExecuteInProcessResult
    """Of the joined table's checks and nothing else."""
    versions: tuple[Mapping[str, int], Mapping[str, int]]
    """Of the tables before and after the repetition and the one asset."""


@pytest.fixture(scope="module")
def history(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[History]:
    """Return what the runs of one pipeline reported; its batches run once for all tests."""
    with DagsterInstance.ephemeral() as instance:
        project = Project(write_pipeline(tmp_path_factory.mktemp("history")), instance)
        selection = project.run(DAYS[0], DAYS[0], "flights_with_planes")
        backfill = project.run(DAYS[0], DAYS[1])
        before = project.versions()
        repetition = project.run(DAYS[0], DAYS[1])
        one_again = project.run(DAYS[1], DAYS[1], "flights_with_planes/flights_with_planes_response_log")
        after = project.versions()
        project.lose_row(spark)
        damaged = project.run(DAYS[0], DAYS[2])
        alone = project.check("flights_with_planes")
        yield History(project, selection, backfill, repetition, one_again, damaged, alone, (before, after))


def test_selection_runs_the_whole_batch_and_checks_what_was_selected(history: History) -> None:
    """With the joined table alone selected every asset of the batch is reported, and that one is checked."""
    assert history.selection.success, failure(history.selection)
    assert set(reported(history.selection)) == {(asset, DAYS[0]) for asset in ASSETS}
    assert {asset for asset, _ in evaluations(history.selection)} == {"flights_with_planes"}
    assert set(Journal(history.project.lake).published[0].tables) == {"flights", "planes"}


def test_backfill_materialises_every_partition_with_its_batch(history: History) -> None:
    """A range is one run with a batch a day; the day that a former run had worked off is told as such."""
    assert history.backfill.success, failure(history.backfill)
    facts = reported(history.backfill)
    assert set(facts) == {(asset, day) for asset in ASSETS for day in DAYS[:2]}
    assert {facts[asset, DAYS[0]]["status"] for asset in ASSETS} == {"already applied"}
    assert {facts[asset, DAYS[1]]["status"] for asset in ASSETS} == {"applied"}
    assert [facts["flights", day]["batch"] for day in DAYS[:2]] == [1, 2]
    assert [facts["flights", day]["dagster/row_count"] for day in DAYS[:2]] == [40, 39]
    assert [facts["flights_with_planes", day]["dagster/row_count"] for day in DAYS[:2]] == [40, 39]
    assert facts["flights", DAYS[1]]["records"] == 23
    answers = facts["flights_with_planes/flights_with_planes_response_log", DAYS[1]]
    assert answers["answers"] == answers["applied"] + answers["superseded"] + answers["stale"]
    assert facts["flights_with_planes", DAYS[1]]["delta_version"] == 1


def test_checks_run_once_over_the_rows_of_the_run(history: History) -> None:
    """All rules pass, and say which batches they looked at: those of a join had been judged by their gates."""
    checks = evaluations(history.backfill)
    assert {asset for asset, _ in checks} == {"flights", "planes", "flights_with_planes"}
    assert all(check.passed for check in checks.values())
    metadata = checks["flights_with_planes", "one_subscription"].metadata
    assert metadata["looked_at"].value == "rows of batches 1 to 2, before each commit"
    of_table = checks["flights", "one_row_per_key"].metadata
    assert of_table["looked_at"].value == "rows of batches 1 to 2"
    assert not {"data_docs"} & {*metadata, *of_table}


@pytest.mark.failure(8)
@pytest.mark.failure(9)
def test_backfill_is_repeated_without_effect(history: History) -> None:
    """The same range again materialises everything as applied already, and commits nothing."""
    assert history.repetition.success, failure(history.repetition)
    facts = reported(history.repetition)
    assert {values["status"] for values in facts.values()} == {"already applied"}
    assert [facts["planes", day]["batch"] for day in DAYS[:2]] == [1, 2]
    before, after = history.versions
    assert before == after


@pytest.mark.failure(9)
def test_one_asset_again_is_reported_as_already_applied(history: History) -> None:
    """With its batch; nothing is committed for it."""
    assert history.one_again.success, failure(history.one_again)
    facts = reported(history.one_again)
    assert set(facts) == {("flights_with_planes/flights_with_planes_response_log", DAYS[1])}
    told = facts["flights_with_planes/flights_with_planes_response_log", DAYS[1]]
    assert (told["status"], told["batch"]) == ("already applied", 2)
    before, after = history.versions
    assert before == after


def test_sensor_asks_for_no_run_once_everything_is_read(history: History) -> None:
    """Held against the plan, no file waits, without the cursor of a former look."""
    project = history.project
    repository = pipeline_definitions(
        EmbeddedPipeline(project.pipeline), datetime.now(UTC)
    ).get_repository_def()
    tick = repository.get_sensor_def("tiny_new_files")(build_sensor_context(instance=project.instance))
    assert isinstance(tick, SensorResult)
    assert not tick.run_requests


def test_failing_check_makes_the_run_fail_and_shows_the_rows(history: History) -> None:
    """Checks that look at all rows find a row that was lost after its batch; they lead to Data Docs."""
    assert history.damaged.success, failure(history.damaged)
    assert reported(history.damaged)["flights", DAYS[2]]["status"] == "applied"
    assert not history.checks_alone.success
    checks = evaluations(history.checks_alone)
    assert {rule for (_, rule), check in checks.items() if not check.passed} == {"nothing_pending"}
    pending = checks["flights_with_planes", "nothing_pending"].metadata
    assert pending["offending_rows"].value == 1
    assert pending["looked_at"].value == "all rows"
    assert '{"flight_id": 110}' in str(pending["sample"].value)
    assert Path(str(pending["data_docs"].value)).is_file()


@pytest.mark.failure(8)
@pytest.mark.usefixtures("spark")
def test_batch_of_a_failed_run_is_checked_by_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run that published it came to no check, and the next one asks for another day."""

    def one_batch(*args: Any, **options: Any) -> Iterator[Published]:
        yield next(batches := run_batches(*args, **options))
        batches.close()
        raise LakeBusy("the lake is being written by process 1")

    with DagsterInstance.ephemeral() as instance:
        project = Project(write_pipeline(tmp_path, DAYS[:2]), instance)
        with monkeypatch.context() as patched:
            patched.setattr("lakejoin.orchestration.defs.assets.run_batches", one_batch)
            assert failure(project.run(DAYS[0], DAYS[1], batch_by="date")).startswith("LakeBusy")
        result = project.run(DAYS[1], DAYS[1])
        again = reported(project.run(DAYS[0], DAYS[0]))

    assert reported(result)["flights", DAYS[1]]["batch"] == 2
    of_table = evaluations(result)["flights", "one_row_per_key"]
    assert of_table.metadata["looked_at"].value == "rows of batches 1 to 2"
    assert result.success, failure(result)
    assert {values["status"] for values in again.values()} == {"already applied"}


@pytest.mark.usefixtures("spark")
def test_run_rebuilds_a_join_and_takes_a_day_anew_before_what_is_new(tmp_path: Path) -> None:
    """As its options say; both are batches of no day, which Dagster is told of beside those of the days."""
    with DagsterInstance.ephemeral() as instance:
        project = Project(write_pipeline(tmp_path), instance)
        assert project.run(DAYS[0], DAYS[0]).success
        planes = project.path.parent / "data" / "planes" / f"{DAYS[0]}.jsonl"
        planes.write_text("".join(planes.read_text("utf-8").splitlines(keepends=True)[1:]), "utf-8")
        result = project.run(DAYS[1], DAYS[1], rebuild=["flights_with_planes"], replace=DAYS[0])
        assert result.success, failure(result)
        journal = Journal(project.lake)
    assert [(plan.kind, list(plan.bootstrap)) for plan in journal.plans[1:]] == [
        ("bootstrap", ["flights_with_planes"]), ("replace", []), ("batch", []),
    ]  # fmt: skip
    assert {partition for _, partition in reported(result)} >= {DAYS[1]}


@pytest.mark.usefixtures("spark")
def test_backfill_puts_small_days_together_unless_told_otherwise(tmp_path: Path) -> None:
    """Either way each date is told the records that it had; a batch for each date counts the same."""
    told = {}
    for batch_by, batches in (("size", 1), ("date", 3)):
        with DagsterInstance.ephemeral() as instance:
            project = Project(write_pipeline(tmp_path / batch_by), instance)
            result = project.run(DAYS[0], DAYS[2], batch_by=batch_by)
            assert result.success, failure(result)
            assert len(Journal(project.lake).published) == batches
        facts = reported(result)
        assert set(facts) == {(asset, day) for asset in ASSETS for day in DAYS}
        told[batch_by] = {day: facts["flights", day]["records"] for day in DAYS}
    assert told["size"] == told["date"]


@pytest.mark.usefixtures("spark")
def test_rule_to_accept_that_there_is_not_is_refused(tmp_path: Path) -> None:
    """Before anything is planned: the batch that it should let pass would be refused in the end."""
    with DagsterInstance.ephemeral() as instance:
        project = Project(write_pipeline(tmp_path), instance)
        result = project.run(DAYS[0], DAYS[0], accept=["left_row_curent"])
    assert not result.success
    assert failure(result).startswith(
        "WrongUsage: no rule 'left_row_curent'; did you mean 'left_row_current'"
    )
    assert not Journal(project.lake).plans


@pytest.mark.usefixtures("spark")
@pytest.mark.failure(12)
def test_run_beside_another_writer_fails_with_a_clear_word(tmp_path: Path) -> None:
    """While somebody else writes the lake, a run says so and leaves everything as it was."""
    with DagsterInstance.ephemeral() as instance:
        project = Project(write_pipeline(tmp_path), instance)
        with writing(project.lake):
            result = project.run(DAYS[0], DAYS[0])
    assert not result.success
    assert failure(result).startswith("LakeBusy: ")
    assert not reported(result)
    assert not Journal(project.lake).plans
