"""The project of a user, with a module called storage, an executor and a resource of its own, and two pipelines.

It is run as a user would, by `dg launch`, with a process for each step.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow]

DG = Path(sys.executable).with_name("dg")
_PIPELINE = """\
name: {name}
lake: ./lake
engine: {{resident: false}}
tables:
  orders: {{source: {{format: jsonl, path: orders.jsonl}}, columns: {{id: int, ref: int}}, key: [id], max_bad_ratio: 0}}
  customers: {{source: {{format: jsonl, path: customers.jsonl}}, columns: {{id: int, name: string}}, key: [id]}}
joins:
  sold: {{left: orders, right: customers, foreign_key: [ref], how: left, prefix: c_}}
"""
_PROJECT = """\
[project]
name = "warehouse"
version = "0.1"
requires-python = ">=3.11"
[tool.dg]
directory_type = "project"
[tool.dg.project]
root_module = "warehouse"
"""
_DEFINITIONS = """\
from pathlib import Path

import dagster as dg
import storage

from lakejoin.dagster import lakejoin_definitions

ROOT = Path(__file__).parents[1]


@dg.asset(deps=[dg.AssetKey(["warehouse", "shop", "sold"])], required_resource_keys={"spark"})
def report(context) -> None:
    storage.remember(context.resources.spark)


@dg.definitions
def defs():
    return dg.Definitions.merge(
        dg.load_from_defs_folder(path_within_project=Path(__file__).parent),
        lakejoin_definitions(ROOT / "shop" / "lakejoin.yaml", key_prefix="warehouse"),
        dg.Definitions(
            assets=[report],
            executor=dg.multiprocess_executor,
            resources={"spark": dg.ResourceDefinition.hardcoded_resource("their session")},
        ),
    )
"""
_STORAGE = """\
from pathlib import Path


def remember(what):
    with Path(__file__).with_name("seen.txt").open("a") as file:
        file.write(what + "\\n")
"""
_COMPONENT = """\
type: lakejoin.dagster.LakejoinComponent
attributes:
  config: lakejoin.yaml
  key_prefix: [warehouse]
post_processing:
  assets:
    - target: "*"
      attributes: {group_name: theirs}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return the folder of a `dg` project: a pipeline by definitions, another one by a component."""
    defs = tmp_path / "warehouse" / "defs"
    for folder in (tmp_path / "shop", defs / "yard", tmp_path / "home"):
        folder.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text(_PROJECT)
    (tmp_path / "storage.py").write_text(_STORAGE)
    (tmp_path / "warehouse" / "__init__.py").write_text("")
    (tmp_path / "warehouse" / "definitions.py").write_text(_DEFINITIONS)
    (defs / "__init__.py").write_text("")
    (defs / "yard" / "defs.yaml").write_text(_COMPONENT)
    for folder in (tmp_path / "shop", defs / "yard"):
        (folder / "lakejoin.yaml").write_text(_PIPELINE.format(name=folder.name))
        (folder / "orders.jsonl").write_text('{"op": "u", "id": 1, "ref": 7}\n')
        (folder / "customers.jsonl").write_text('{"op": "u", "id": 7, "name": "ann"}\n')
    (tmp_path / "home" / "dagster.yaml").write_text(
        "telemetry: {enabled: false}\nconcurrency: {pools: {granularity: run, default_limit: 1}}\n"
    )
    return tmp_path


@pytest.fixture
def dg(project: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return what runs `dg` in the project."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ, "DAGSTER_HOME": str(project / "home"), "DAGSTER_DISABLE_TELEMETRY": "1",
            "PYTHONPATH": os.pathsep.join([str(project), *filter(None, [os.environ.get("PYTHONPATH")])]),
        }  # fmt: skip
        return subprocess.run(
            [str(DG), *arguments], cwd=project, env=environment, capture_output=True, text=True, check=False,
            timeout=600,
        )  # fmt: skip

    return run


@pytest.mark.skipif(not DG.exists(), reason="dg is not installed")
def test_project_runs_blocks_and_goes_on(
    project: Path, dg: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """What follows a result waits while a batch is refused, and comes when its cause is gone."""
    seen, orders = project / "seen.txt", project / "shop" / "orders.jsonl"
    launch = ("launch", "--assets", 'key:"warehouse/shop/*" or key:"report"')
    listed = dg("list", "defs", "--json")
    assert listed.returncode == 0, listed.stderr
    assert "warehouse/yard/sold" in listed.stdout
    assert {asset["group_name"] for asset in json.loads(listed.stdout)["assets"]} == {
        "default",
        "shop",
        "shop_internal",
        "shop_sources",
        "theirs",
    }

    first = dg(*launch)
    assert first.returncode == 0, first.stderr[-2000:]
    assert seen.read_text() == "their session\n"

    shutil.copy(orders, project / "sound.jsonl")
    with orders.open("a") as file:
        file.write("broken\n")
    refused = dg(*launch)
    assert "TooManyBadRecords" in refused.stderr
    assert seen.read_text() == "their session\n"

    with (project / "sound.jsonl").open("a") as file:
        file.write('{"op": "u", "id": 2, "ref": 7}\n')
    shutil.copy(project / "sound.jsonl", orders)
    again = dg(*launch)
    assert again.returncode == 0, again.stderr[-2000:]
    assert seen.read_text() == "their session\n" * 2


def test_a_scaffolded_component_loads_as_it_is(
    project: Path, dg: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """With the file of a small pipeline, which is there to be changed; the component is in the list."""
    assert "lakejoin.dagster.LakejoinComponent" in dg("list", "components", "--json").stdout
    made = dg("scaffold", "defs", "lakejoin.dagster.LakejoinComponent", "mine")
    assert made.returncode == 0, made.stderr
    assert (project / "warehouse" / "defs" / "mine" / "lakejoin.yaml").exists()
    checked = dg("check", "defs")
    assert checked.returncode == 0, checked.stderr + checked.stdout
