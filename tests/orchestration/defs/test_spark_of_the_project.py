"""A pipeline that works in the Spark application of the project around it."""

from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock, patch

import pytest
from dagster import DagsterInstance, Definitions, ExecuteInProcessResult
from pyspark.sql import SparkSession

from lakejoin.dagster import lakejoin_definitions
from lakejoin.storage.spark.session import SessionUnusable, session_beside

_TEXT = """\
name: shop
lake: ./lake
tables:
  orders: {source: {format: jsonl, path: orders.jsonl}, columns: {id: int, ref: int, at: timestamp}, key: [id]}
  customers: {source: {format: jsonl, path: customers.jsonl}, columns: {id: int, name: string}, key: [id]}
joins:
  sold: {left: orders, right: customers, foreign_key: [ref], how: left, prefix: c_}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Return the file of a pipeline with an order and a customer."""
    (tmp_path / "orders.jsonl").write_text('{"op": "u", "id": 1, "ref": 7, "at": "2024-01-01T00:00:00Z"}\n')
    (tmp_path / "customers.jsonl").write_text('{"op": "u", "id": 7, "name": "ann"}\n')
    path = tmp_path / "lakejoin.yaml"
    path.write_text(_TEXT)
    return path


@pytest.fixture
def theirs(spark: SparkSession) -> SparkSession:
    """Return a session that the project started, with a time zone of its own."""
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    session.conf.set("spark.sql.ansi.enabled", "false")
    return session


def run(config: Path, resource: object) -> ExecuteInProcessResult:
    """Run the job of a pipeline that takes its session from the resource `spark`."""
    project = Definitions.merge(
        lakejoin_definitions(config, spark="spark"), Definitions(resources={"spark": resource})
    )
    with DagsterInstance.ephemeral() as instance:
        return project.resolve_job_def("shop_job").execute_in_process(instance=instance, raise_on_error=False)


@pytest.mark.spark
@pytest.mark.parametrize("wrapped", [False, True], ids=["a session", "an object with one"])
def test_batches_and_checks_run_beside_the_session_of_the_project(
    config: Path, theirs: SparkSession, *, wrapped: bool
) -> None:
    """In its application, with the settings that results need; its own session stays as it is."""
    beside = "lakejoin.orchestration.defs.spark_resource.session_beside"
    with patch(beside, wraps=session_beside) as begun:
        done = run(config, SimpleNamespace(spark_session=theirs) if wrapped else theirs)

    assert done.success
    assert begun.call_count == 1
    assert [check for check in done.get_asset_check_evaluations() if not check.passed] == []
    joined = theirs.read.format("delta").load(str(config.parent / "lake" / "joins" / "sold" / "joined"))
    assert [tuple(row) for row in joined.select("id", "c_name", joined["at"].cast("string")).collect()] == [
        (1, "ann", "2024-01-01 09:00:00")
    ]
    assert theirs.conf.get("spark.sql.ansi.enabled") == "false"
    assert theirs.catalog.listTables() == []


@pytest.mark.parametrize(
    ("resource", "message"),
    [
        (42, "The resource 'spark' is no Spark session: found int, expected a pyspark.sql.SparkSession"),
        (SimpleNamespace(session=1), "found SimpleNamespace"),
    ],
)
def test_what_is_no_session_is_refused(config: Path, resource: object, message: str) -> None:
    """With the name of the resource, and what was found."""
    done = run(config, resource)
    assert not done.success
    (failed,) = [event for event in done.all_events if event.is_step_failure]
    failure = failed.step_failure_data.user_failure_data
    assert message in failure.description


def test_a_session_without_delta_is_refused() -> None:
    """Before anything is done with it."""
    given = Mock(spec=SparkSession)
    given.conf.get.return_value = "com.example.Extension"
    with pytest.raises(
        SessionUnusable, match=r"spark.sql.extensions is com.example.Extension, expected io.delta"
    ):
        session_beside(given)
    given.newSession.assert_not_called()
