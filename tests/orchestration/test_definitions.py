"""What Dagster loads of a pipeline, without a JVM: assets and their graph, partitions, checks."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from dagster import (
    AssetKey,
    DagsterInstance,
    Definitions,
    TableSchema,
)

from lakejoin.expectations.rules import rules_for
from lakejoin.orchestration.cli.dev import prepare_home
from lakejoin.orchestration.config import load
from lakejoin.orchestration.defs.assets import BatchOptions
from lakejoin.orchestration.defs.code_location import pipeline_definitions
from lakejoin.orchestration.defs.embedded_pipeline import EmbeddedPipeline
from lakejoin.orchestration.defs.partitions import daily_partitions
from recordings.tiny import DAYS, write_pipeline

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
RANGE_TAGS = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")

_TABLE = (
    "{{source: {{format: jsonl, path: '{path}'}}, columns: {{id: int, ref: int, other: int}}, key: [id]}}"
)
_CHAIN = """\
name: chain
lake: ./lake
tables:
  a: {a}
  b: {b}
  c: {c}
joins:
  a_with_b: {{left: a, right: b, foreign_key: [ref], how: inner, prefix: b_, changelog: true, history: true}}
  a_with_b_with_c: {{left: a_with_b, right: c, foreign_key: [other], how: left, prefix: c_}}
"""


@pytest.fixture
def configuration(tmp_path: Path) -> Path:
    """Return the configuration of the tiny recording in a folder of its own, without its last day."""
    return write_pipeline(tmp_path, DAYS[:2])


def definitions(path: Path, now: datetime = NOW) -> Definitions:
    """Return what Dagster gets for a configuration file."""
    return pipeline_definitions(EmbeddedPipeline(load(path)), now)


def keys(path: Path, now: datetime = NOW) -> list[str]:
    """Return the partitions of a pipeline as Dagster numbers them."""
    partitions = daily_partitions(load(path), now)
    assert partitions is not None
    return list(partitions.get_partition_keys(current_time=now))


def write_chain(folder: Path, path: str = "data/{name}.jsonl") -> Path:
    """Write a pipeline of a join over a join; `path` is that of each source."""
    (folder / "data").mkdir()
    tables = {name: _TABLE.format(path=path.replace("{name}", name)) for name in "abc"}
    file = folder / "lakejoin.yaml"
    file.write_text(_CHAIN.format(**tables), encoding="utf-8")
    return file


def test_definitions_load_without_a_java(configuration: Path, tmp_path: Path) -> None:
    """What `workspace.yaml` names loads in a fresh process that has no Java and starts no JVM."""
    script = (
        "from lakejoin.orchestration.definitions import defs\n"
        "from pyspark import SparkContext\n"
        "assert SparkContext._gateway is None\n"
        "print(len(defs.resolve_asset_graph().get_all_asset_keys()))"
    )
    environment = {
        **os.environ,
        "LAKEJOIN_CONFIG": str(configuration),
        "JAVA_HOME": str(tmp_path / "none"),
        "PATH": "",
    }
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "7"), done.stderr


def test_graph_leads_from_both_tables_through_the_logs_to_the_joined_table(configuration: Path) -> None:
    """The left table feeds the subscription log, this and the right table the response log, and so on."""
    graph = definitions(configuration).resolve_asset_graph()
    parents = {
        "/".join(key.path): {"/".join(parent.path) for parent in graph.get(key).parent_keys}
        for key in graph.get_all_asset_keys()
    }
    assert parents == {
        "tiny/flights/flights_source": set(),
        "tiny/planes/planes_source": set(),
        "tiny/flights": {"tiny/flights/flights_source"},
        "tiny/planes": {"tiny/planes/planes_source"},
        "tiny/flights_with_planes/flights_with_planes_subscription_log": {"tiny/flights"},
        "tiny/flights_with_planes/flights_with_planes_response_log": {
            "tiny/flights_with_planes/flights_with_planes_subscription_log",
            "tiny/planes",
        },
        "tiny/flights_with_planes": {"tiny/flights_with_planes/flights_with_planes_response_log"},
    }


def test_graph_of_a_join_over_a_join_starts_from_the_first_result(tmp_path: Path) -> None:
    """The second join subscribes from the first joined table; changelog and history are assets where they are kept."""
    graph = definitions(write_chain(tmp_path)).resolve_asset_graph()
    second = graph.get(AssetKey(["chain", "a_with_b_with_c", "a_with_b_with_c_subscription_log"]))
    changelog = graph.get(AssetKey(["chain", "a_with_b", "a_with_b_changelog"]))
    assert second.parent_keys == {AssetKey(["chain", "a_with_b"])}
    assert changelog.parent_keys == {AssetKey(["chain", "a_with_b", "a_with_b_response_log"])}
    history = graph.get(AssetKey(["chain", "a_with_b", "a_with_b_history"]))
    assert history.parent_keys == changelog.parent_keys
    others = {
        AssetKey(["chain", "a_with_b_with_c", f"a_with_b_with_c_{log}"]) for log in ("changelog", "history")
    }
    assert others.isdisjoint(graph.get_all_asset_keys())


def test_asset_has_the_name_and_the_comments_that_its_table_has_in_a_catalog(tmp_path: Path) -> None:
    """Before what is said of every such table; that of the history has its own."""
    file = write_chain(tmp_path)
    kept = "materialized: {table: shop.both, comment: Both., comments: {id: of an a}}"
    of_history = "history: {materialized: {table: other.shop.both_then}}"
    text = file.read_text("utf-8").replace("history: true", f"{of_history}, {kept}")
    file.write_text(text, "utf-8")
    graph = definitions(file).resolve_asset_graph()
    joined, history = (
        graph.get(AssetKey(["chain", "a_with_b", *step])) for step in ((), ("a_with_b_history",))
    )
    assert [node.metadata["dagster/table_name"] for node in (joined, history)] == [
        "shop.both",
        "other.shop.both_then",
    ]
    assert joined.description.startswith("Both.\n\n")
    columns = {column.name: column.description for column in joined.metadata["dagster/column_schema"].columns}
    assert columns["id"] == "of an a"


def test_assets_are_described_for_the_catalogue(configuration: Path) -> None:
    """Every asset has a group, a description, kinds, a place, and its columns with their types."""
    graph = definitions(configuration).resolve_asset_graph()
    for key in graph.materializable_asset_keys:
        node = graph.get(key)
        assert node.group_name == ("tiny_internal" if key.path[-1].endswith("_log") else "tiny")
        assert node.kinds == {"deltalake", "spark"}
        assert node.description
        assert node.pools == {"tiny"}
        assert str(node.metadata["dagster/uri"]).startswith(str(configuration.parent / "lake"))
    joined = graph.get(AssetKey(["tiny", "flights_with_planes"]))
    schema = joined.metadata["dagster/column_schema"]
    assert isinstance(schema, TableSchema)
    columns = {column.name: column for column in schema.columns}
    assert columns["flight_id"].constraints.unique
    assert columns["fare_total"].type == "decimal(12,2)"
    assert columns["plane_seats"].description == "From planes.seats"


def test_partitions_end_with_the_last_file_of_a_past_source(configuration: Path) -> None:
    """A recording of 2013 has its own days, the newest one included, and none up to today."""
    assert keys(configuration) == ["2013-03-01", "2013-03-02"]


def test_partitions_of_a_live_source_grow_with_the_clock(tmp_path: Path) -> None:
    """While files keep coming, today can be materialised before it is over, and tomorrow without a reload."""
    path = write_chain(tmp_path, "data/{name}-{date}.jsonl")
    (tmp_path / "data" / "a-2026-11-19.jsonl").touch()
    partitions = daily_partitions(load(path), NOW)
    assert partitions is not None
    assert keys(path) == ["2026-11-19", "2026-11-20", "2026-11-21"]
    assert partitions.get_partition_keys(current_time=NOW + timedelta(days=1))[-1] == "2026-11-22"


def test_partitions_reach_a_file_dated_in_the_future(tmp_path: Path) -> None:
    """A day's plan that arrives the evening before can be materialised at once."""
    path = write_chain(tmp_path, "data/{name}-{date}.jsonl")
    for day in ("2026-11-21", "2026-11-23"):
        (tmp_path / "data" / f"b-{day}.jsonl").touch()
    assert keys(path) == ["2026-11-21", "2026-11-22", "2026-11-23"]


def test_partitions_leave_out_what_is_dated_for_nobody_to_see(tmp_path: Path) -> None:
    """Dagster goes through every day up to the last one, and beyond 9999 there is none."""
    path = write_chain(tmp_path, "data/{name}-{date}.jsonl")
    for day in ("2026-11-20", "2028-01-01", "9999-12-31"):
        (tmp_path / "data" / f"b-{day}.jsonl").touch()
    assert keys(path) == ["2026-11-20", "2026-11-21"]


def test_partitions_begin_at_the_declared_start(configuration: Path) -> None:
    """With `start` in every source, files from before it make no partitions."""
    text = configuration.read_text(encoding="utf-8")
    configuration.write_text(text.replace(".jsonl\n", ".jsonl\n      start: 2013-03-02\n"), encoding="utf-8")
    assert keys(configuration) == ["2013-03-02"]


def test_partitions_are_today_where_there_is_no_file_yet(tmp_path: Path) -> None:
    """A source without any file, or even its directory, does not keep the definitions from loading."""
    path = write_chain(tmp_path, "nowhere/{name}-{date}.jsonl")
    assert keys(path) == ["2026-11-21"]


def test_assets_have_no_partitions_without_dated_sources(tmp_path: Path) -> None:
    """A pipeline whose paths hold no `{date}` is one unpartitioned whole."""
    graph = definitions(write_chain(tmp_path)).resolve_asset_graph()
    assert all(not graph.get(key).is_partitioned for key in graph.get_all_asset_keys())


def test_backfill_of_a_range_is_a_single_run_of_any_selection(configuration: Path) -> None:
    """All assets are one op that can run a subset, and a range of partitions is one run."""
    graph = definitions(configuration).resolve_asset_graph()
    assets = graph.get(AssetKey(["tiny", "flights"])).assets_def
    assert assets.can_subset
    assert assets.backfill_policy is not None
    assert assets.backfill_policy.max_partitions_per_run is None


def test_names_that_dagster_reserves_do_no_harm(tmp_path: Path) -> None:
    """A pipeline called `type` and a table called `class` load and have their assets."""
    path = write_chain(tmp_path)
    text = path.read_text("utf-8").replace("name: chain", "name: type").replace("  a: ", "  class: ")
    path.write_text(text.replace("left: a,", "left: class,"), encoding="utf-8")
    graph = definitions(path).resolve_asset_graph()
    assert graph.get(AssetKey(["type", "class"])).group_name == "type"
    assert definitions(path).resolve_job_def("type_job")


def test_a_run_has_one_step_whatever_the_executor(configuration: Path) -> None:
    """Batches and checks have one process and one session, also where each step has a process of its own."""
    repository = definitions(configuration).get_repository_def()
    ours = [job for job in repository.get_all_jobs() if job.name.startswith("tiny_")]
    assert {len(job.graph.nodes) for job in ours} == {1}
    assert definitions(configuration).executor is None


def test_the_launchpad_explains_every_option(configuration: Path) -> None:
    """Each has a description and a default, so that the launchpad can be left as it is."""
    job = definitions(configuration).resolve_job_def("tiny_job")
    (node,) = job.graph.nodes
    fields = node.definition.config_field.config_type.fields
    assert set(fields) == set(BatchOptions.model_fields)
    assert all(field.description and not field.is_required for field in fields.values())


def test_every_rule_is_a_blocking_check_of_its_asset(configuration: Path) -> None:
    """Each has the rules of its kind; one that does not hold fails the run, and bad records only warn."""
    graph = definitions(configuration).resolve_asset_graph()
    joined = AssetKey(["tiny", "flights_with_planes"])
    names = {key.name for key in graph.asset_check_keys if key.asset_key == joined}
    assert names == {rule.name for rule in rules_for("left")}
    specs = [graph.get_check_spec(key) for key in graph.asset_check_keys]
    assert all(spec.blocking == (spec.name != "records_accepted") and spec.description for spec in specs)
    assert {spec.asset_key for spec in specs} == {
        joined,
        AssetKey(["tiny", "flights"]),
        AssetKey(["tiny", "planes"]),
    }


def test_dangling_foreign_keys_are_checked_where_the_file_says_how_many_may_be(tmp_path: Path) -> None:
    """A check of the joined table for each right side that says it, which blocks nothing."""
    path = write_chain(tmp_path)
    star = "  star: {left: a, rights: {one: {table: b, foreign_key: [ref], how: left, max_dangling: 5 %},"
    star += " two: {table: c, foreign_key: [other], how: left}}}\n"
    text = path.read_text().replace("prefix: b_", "prefix: b_, max_dangling: 0.01")
    path.write_text(text + star)

    graph = definitions(path).resolve_asset_graph()
    found = [key for key in graph.asset_check_keys if "dangling" in key.name]

    assert {(key.asset_key.path[1], key.name) for key in found} == {
        ("a_with_b", "dangling"),
        ("star", "one_dangling"),
    }
    assert not any(graph.get_check_spec(key).blocking for key in found)


def test_instance_of_ours_sends_nothing_and_lets_runs_queue(tmp_path: Path) -> None:
    """A fresh home has telemetry off and one run at a time in a pool; settings that exist are left alone."""
    home = prepare_home(tmp_path / "home")
    with DagsterInstance.from_config(str(home)) as instance:
        assert not instance.telemetry_enabled
        assert instance.get_concurrency_config().pool_config.default_pool_limit == 1
    (home / "dagster.yaml").write_text("telemetry: {enabled: true}\n")
    prepare_home(home)
    assert (home / "dagster.yaml").read_text() == "telemetry: {enabled: true}\n"
