"""`lakejoin doctor` as a user types it."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from lakejoin.orchestration.cli import app, options

PIPELINE = """\
name: shop
lake: ./lake
spark: {{conf: {{spark.driver.memory: {memory}}}}}
tables:
  orders:
    source: {{format: jsonl, path: "orders/*.jsonl"}}
    columns: {{id: bigint}}
    key: [id]
"""


@pytest.fixture(autouse=True)
def _no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail when a session is asked for."""
    monkeypatch.setattr(options, "open_session", lambda pipeline: pytest.fail("a session was asked for"))


def doctor(folder: Path, memory: str) -> Result:
    """Look at a pipeline with a heap of this size."""
    path = folder / "lakejoin.yaml"
    path.write_text(PIPELINE.format(memory=memory))
    return CliRunner().invoke(app, ["doctor", str(path)])


def test_what_is_wrong_decides_the_exit_code(tmp_path: Path) -> None:
    """A line each; the heap is the pipeline's, and so is the lake."""
    fine, large = doctor(tmp_path, "64m"), doctor(tmp_path, "900t")

    assert (fine.exit_code, large.exit_code) == (0, 1), fine.output
    assert [line.split()[1] for line in fine.stdout.splitlines()] == [
        "packages:", "Java:", "collector:", "JARs:", "archive:", "engine:", "memory:", "disk:", "port:",
    ]  # fmt: skip
    assert f"free where {tmp_path / 'lake'} lies" in fine.stdout
    assert "\nwrong    memory: " in large.stdout


def test_no_pipeline_is_needed() -> None:
    """On a machine that has none yet; what is wrong in one is told as everywhere."""
    assert "Java: " in CliRunner().invoke(app, ["doctor"]).stdout
    assert CliRunner().invoke(app, ["doctor", "nothing.yaml"]).exit_code == 2
