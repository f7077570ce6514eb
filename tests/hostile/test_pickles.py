"""No pickle is read or written: who can write one can run code here."""

import ast
from datetime import UTC, datetime
from pathlib import Path

import pytest
from dagster import AssetsDefinition

from faults.market import make_market
from lakejoin.orchestration.defs.code_location import pipeline_definitions
from lakejoin.orchestration.defs.embedded_pipeline import EmbeddedPipeline

pytestmark = pytest.mark.bad_input(35)

ROOT = Path(__file__).parents[2]
PACKAGES = ("transforms", "storage", "expectations", "orchestration")
PICKLING = {"pickle", "cloudpickle", "dill", "marshal", "shelve", "joblib"}


def test_no_module_can_read_a_pickle() -> None:
    """None of ours imports what reads them."""
    found = [
        (str(file.relative_to(ROOT)), name)
        for package in PACKAGES
        for file in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names])
        if name and name.partition(".")[0] in PICKLING
    ]
    assert found == []


def test_no_asset_hands_dagster_a_value_to_keep(tmp_path: Path) -> None:
    """What Dagster keeps between steps it pickles: of assets names of tables; of a check the value is always None."""
    definitions = pipeline_definitions(EmbeddedPipeline(make_market(tmp_path / "market")), datetime.now(UTC))
    assets = [one for one in definitions.assets or () if isinstance(one, AssetsDefinition)]
    kept = [
        (str(one.node_def.name), output.name)
        for one in assets
        for output in one.node_def.output_defs
        if not output.dagster_type.is_nothing and output.name not in one.check_specs_by_output_name
    ]
    assert assets
    assert kept == []
