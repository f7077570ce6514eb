"""The page about Dagster projects works as it stands: its definitions load, its conditions fire when it says so."""

import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from dagster import (
    AssetCheckEvaluation,
    AssetKey,
    AssetMaterialization,
    DagsterInstance,
    Definitions,
    evaluate_automation_conditions,
)

from lakejoin.dagster import LakejoinComponent

PAGE = Path(__file__).parents[3] / "docs" / "dagster.md"
SOLD = AssetKey(["warehouse", "shop", "sold"])
_TEXT = """\
name: {name}
lake: ./lake-{name}
tables:
  orders: {{source: {{format: jsonl, path: "orders{day}.jsonl"}}, columns: {{id: int, ref: int}}, key: [id]}}
  customers: {{source: {{format: jsonl, path: customers.jsonl}}, columns: {{id: int, name: string}}, key: [id]}}
joins:
  sold: {{left: orders, right: customers, foreign_key: [ref], how: left}}
"""


def block(name: str) -> str:
    """A block of the page, by the name of the file in its first line."""
    (found,) = re.findall(
        rf"^```\w+\n(# {re.escape(name)}\n.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    return found


def module(folder: Path, name: str) -> ModuleType:
    """The module that a block is, in a folder."""
    made = ModuleType(name.removesuffix(".py"))
    made.__file__ = str(folder / name)
    exec(compile(block(name), made.__file__, "exec"), made.__dict__)
    return made


@pytest.fixture(params=["", "-{date}"], ids=["without days", "with days"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a folder with two pipelines, whose orders come by day or not."""
    (tmp_path / "pipelines").mkdir()
    for name in ("shop", "yard"):
        text = _TEXT.format(name=name, day=request.param)
        (tmp_path / "pipelines" / f"{name}.yaml").write_text(text)
    (tmp_path / "pipelines" / "orders-2024-01-01.jsonl").write_text("")
    return tmp_path


@pytest.fixture
def instance() -> Iterator[DagsterInstance]:
    """Return an instance that remembers nothing yet."""
    with DagsterInstance.ephemeral() as remembered:
        yield remembered


def test_two_pipelines_make_a_project(project: Path) -> None:
    """With keys, groups and owners as the page says."""
    defs = module(project, "definitions.py").defs
    Definitions.validate_loadable(defs)
    graph = defs.resolve_asset_graph()
    assert graph.get(SOLD).owners == ["team:data"]
    assert graph.get(AssetKey(["warehouse", "yard", "orders"])).group_name == "logistics"
    logs = AssetKey([*SOLD.path, "sold_response_log"])
    assert graph.get(logs).group_name == "shop_internal"
    assert {sensor.name for sensor in defs.get_repository_def().sensor_defs} >= {
        "shop_published",
        "yard_published",
    }


def publish(instance: DagsterInstance, defs: Definitions, *, passed: bool) -> None:
    """Tell an instance of a batch: the result, then its checks."""
    node = defs.resolve_asset_graph().get(SOLD)
    partition = None if node.partitions_def is None else "2024-01-01"
    instance.report_runless_asset_event(AssetMaterialization(SOLD, partition=partition))
    for key in node.check_keys:
        instance.report_runless_asset_event(
            AssetCheckEvaluation(
                asset_key=SOLD, check_name=key.name, passed=passed, metadata={}, blocking=True
            )
        )


@pytest.mark.filterwarnings("ignore::dagster_shared.utils.warnings.BetaWarning")  # of Dagster's own call
def test_an_asset_follows_each_batch_that_passed_its_checks(project: Path, instance: DagsterInstance) -> None:
    """And none that did not; with checks that pass it follows after all."""
    revenue = module(project, "eager.py").revenue
    defs = Definitions.merge(module(project, "definitions.py").defs, Definitions(assets=[revenue]))
    cursor: Any = None

    def requested() -> int:
        nonlocal cursor
        found = evaluate_automation_conditions(defs=defs, instance=instance, cursor=cursor)
        cursor = found.cursor
        return found.get_num_requested(AssetKey("revenue"))

    before = requested()
    publish(instance, defs, passed=False)
    blocked = requested()
    publish(instance, defs, passed=True)

    assert (before, blocked, requested(), requested()) == (0, 0, 1, 0)


def test_other_recipes_load_beside_the_definitions(project: Path) -> None:
    """A day's asset and a week's one depend on a key that is there."""
    assets = [module(project, "daily.py").letter, module(project, "weekly.py").weekly_revenue]
    defs = Definitions.merge(module(project, "definitions.py").defs, Definitions(assets=assets))
    Definitions.validate_loadable(defs)
    graph = defs.resolve_asset_graph()
    for name in ("letter", "weekly_revenue"):
        assert graph.get(AssetKey(name)).parent_keys == {SOLD}
        assert graph.get(SOLD).is_materializable


def test_a_session_of_the_project_is_taken(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The resource is the project's; the pipeline brings none."""
    monkeypatch.chdir(project)
    defs = module(project, "own_spark.py").defs
    Definitions.validate_loadable(defs)
    assert set(defs.resources) == {"spark"}


def test_a_component_says_what_its_attributes_are() -> None:
    """Those of the page are attributes of the component."""
    document = yaml.safe_load(block("defs/shop/defs.yaml"))
    assert document["type"] == f"{LakejoinComponent.__module__}.{LakejoinComponent.__name__}"
    LakejoinComponent.model_validate(document["attributes"])
