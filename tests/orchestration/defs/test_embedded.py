"""A pipeline in a project of somebody else: beside other pipelines, resources and executors, under other keys."""

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from dagster import (
    AssetKey,
    AutomationCondition,
    Definitions,
    FreshnessPolicy,
    ResourceDefinition,
    asset,
    multiprocess_executor,
)

from lakejoin.dagster import lakejoin_definitions
from lakejoin.orchestration.config.problems import ConfigurationError

_TEXT = """\
name: {name}
lake: ./lake
tables:
  orders:
    source: {{format: jsonl, path: "orders/{{date}}.jsonl", start: 2024-01-01}}
    columns: {{id: int, ref: int, at: timestamp}}
    key: [id]
    event_time: at
    versioned: {{history_retention: 10 days}}
  customers:
    source: {{format: jsonl, path: customers.jsonl}}
    columns: {{id: int, name: string}}
    key: [id]
joins:
  sold: {{left: orders, right: customers, foreign_key: [ref], how: left}}
"""


def write(folder: Path, name: str) -> Path:
    """Write the file of a pipeline in a folder of its own."""
    (folder / name).mkdir()
    path = folder / name / "lakejoin.yaml"
    path.write_text(_TEXT.format(name=name), encoding="utf-8")
    return path


def test_pipelines_stand_beside_each_other_and_beside_a_project_with_its_own(tmp_path: Path) -> None:
    """Two pipelines, an executor, a resource called spark and an asset downstream make one code location."""

    @asset(deps=[AssetKey(["warehouse", "shop", "sold"])], required_resource_keys={"spark"})
    def report() -> None:
        """Make a report."""

    project = Definitions.merge(
        lakejoin_definitions(write(tmp_path, "shop"), key_prefix="warehouse"),
        lakejoin_definitions(str(write(tmp_path, "yard")), key_prefix=["warehouse", "raw"]),
        Definitions(
            assets=[report],
            executor=multiprocess_executor,
            resources={"spark": ResourceDefinition.hardcoded_resource("theirs")},
        ),
    )
    Definitions.validate_loadable(project)
    graph = project.resolve_asset_graph()

    assert graph.get(AssetKey("report")).parent_keys == {AssetKey(["warehouse", "shop", "sold"])}
    assert AssetKey(["warehouse", "raw", "yard", "sold", "sold_response_log"]) in graph.get_all_asset_keys()
    assert {key.path[0] for key in graph.get_all_asset_keys()} == {"warehouse", "report"}
    assert {job.executor_def.name for job in project.get_repository_def().get_all_jobs()} == {"multiprocess"}
    checked = {key.asset_key for key in graph.asset_check_keys}
    assert checked <= graph.get_all_asset_keys()
    assert AssetKey(["warehouse", "shop", "sold"]) in checked


def test_lineage_of_columns_goes_by_the_keys_of_the_project(tmp_path: Path) -> None:
    """A column of the joined table is from assets that are there."""
    graph = lakejoin_definitions(write(tmp_path, "shop"), key_prefix="warehouse").resolve_asset_graph()
    lineage = graph.get(AssetKey(["warehouse", "shop", "sold"])).metadata["dagster/column_lineage"]

    from_assets = {dep.asset_key for deps in lineage.deps_by_column.values() for dep in deps}
    assert from_assets == {AssetKey(["warehouse", "shop", name]) for name in ("orders", "customers")}


def test_project_says_what_else_is_true_of_the_assets(tmp_path: Path) -> None:
    """Group, owners, tags, freshness and automation; what only leads to results is in a group of its own."""
    fresh, eager = FreshnessPolicy.time_window(fail_window=timedelta(hours=26)), AutomationCondition.eager()
    definitions = lakejoin_definitions(
        write(tmp_path, "shop"),
        group_name="sales",
        owners=["team:data"],
        tags={"domain": "sales"},
        freshness_policy=fresh,
        automation_condition=eager,
        partitioned=False,
    )
    graph = definitions.resolve_asset_graph()
    nodes = {"/".join(key.path[1:]): graph.get(key) for key in graph.get_all_asset_keys()}

    assert {name: node.group_name for name, node in nodes.items()} == {
        "orders/orders_source": "sales_sources",
        "customers/customers_source": "sales_sources",
        "orders": "sales",
        "customers": "sales",
        "sold": "sales",
        "orders/orders_versions": "sales_internal",
        "sold/sold_subscription_log": "sales_internal",
        "sold/sold_response_log": "sales_internal",
    }
    assert nodes["sold"].freshness_policy == fresh
    assert nodes["sold/sold_response_log"].freshness_policy is None
    for node in nodes.values():
        assert (node.owners, node.tags["domain"], node.partitions_def) == (["team:data"], "sales", None)
        assert node.automation_condition == (eager if node.is_materializable else None)


def test_mistakes_in_the_file_are_told_when_the_project_loads(tmp_path: Path) -> None:
    """With their lines, as `lakejoin validate` tells them."""
    path = write(tmp_path, "shop")
    path.write_text(path.read_text().replace("key: [id]", "kye: [id]", 1))
    with pytest.raises(ConfigurationError, match=r"lakejoin.yaml:7: tables.orders.kye"):
        lakejoin_definitions(path)


def test_a_module_of_the_user_that_is_called_as_one_of_ours_hides_nothing(tmp_path: Path) -> None:
    """A project has a module `storage`, one called `orchestration` and so on, and imports them, and ours."""
    names = ("storage", "orchestration", "transforms", "expectations")
    for name in names:
        (tmp_path / f"{name}.py").write_text("THEIRS = True\n")
    script = f"import {', '.join(names)}\nfrom lakejoin.dagster import lakejoin_definitions\n"
    script += f"lakejoin_definitions({str(write(tmp_path, 'shop'))!r})\n"
    script += f"print(all(module.THEIRS for module in ({', '.join(names)})))"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=dict(os.environ), capture_output=True, text=True,
        check=False, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stdout.strip()) == (0, "True"), done.stderr
