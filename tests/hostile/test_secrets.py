"""A secret of the environment or of Spark's settings is written nowhere: lake, logs, messages, Dagster's records."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from faults.shop import make_shop

pytestmark = [pytest.mark.bad_input(32), pytest.mark.spark, pytest.mark.slow]

SECRET = "hunter2hunter2"  # a planted one
ROOT = Path(__file__).parents[2]
RUN_IN_DAGSTER = """\
import sys
from datetime import UTC, datetime
from dagster import DagsterInstance
from lakejoin.orchestration.defs.code_location import pipeline_definitions
from lakejoin.orchestration.defs.embedded_pipeline import EmbeddedPipeline
from lakejoin.orchestration.config import load
job = pipeline_definitions(EmbeddedPipeline(load(sys.argv[1])), datetime.now(UTC)).resolve_job_def("shop_job")
days = {"dagster/asset_partition_range_start": "2024-01-01", "dagster/asset_partition_range_end": sys.argv[2]}
result = job.execute_in_process(instance=DagsterInstance.get(), tags=days, raise_on_error=False)
sys.exit(0 if result.success else 1)
"""


def run(folder: Path, *command: str) -> tuple[int, str]:
    """Run a Python program with secrets in its environment; returns its exit code and all it said."""
    secrets = {"AWS_SECRET_ACCESS_KEY": SECRET, "AWS_SESSION_TOKEN": SECRET, "DATABASE_PASSWORD": SECRET}
    home = {"DAGSTER_HOME": str(folder), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, *command],
        check=False,
        env={**os.environ, **secrets, **home},
        cwd=folder,
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


def leaks(folder: Path) -> list[str]:
    """Files below a folder that hold the secret."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 20
    return [str(path) for path in files if SECRET.encode() in path.read_bytes()]


def test_secret_is_in_no_file_and_no_message(tmp_path: Path) -> None:
    """After a run, after one that meets a lost file, and after one in Dagster; the file that states it aside."""
    from lakejoin.orchestration.cli.dev import prepare_home

    shop, home = tmp_path / "shop", prepare_home(tmp_path / "dagster")
    path = make_shop(shop, ["2024-01-01", "2024-01-02"]).path
    conf = f"spark: {{conf: {{spark.hadoop.store.password: {SECRET}, spark.sql.shuffle.partitions: 2}}}}\n"
    path.write_text(conf + path.read_text())

    code, said = run(home, "-m", "lakejoin", "run", str(path), "--to", "2024-01-01")
    assert code == 0, said
    shutil.copytree(shop / "lake", shop / "other")
    lost = next((shop / "other" / "tables" / "orders" / "changes").glob("*.parquet"))
    lost.unlink()
    (shop / "fails.yaml").write_text(path.read_text().replace("./lake", "./other"))
    failed, message = run(home, "-m", "lakejoin", "run", str(shop / "fails.yaml"))
    assert (failed, lost.name in message) == (1, True), message
    in_dagster, events = run(home, "-c", RUN_IN_DAGSTER, str(path), "2024-01-02")

    assert in_dagster == 0, events
    assert SECRET not in said + message + events
    for stated in (path, shop / "fails.yaml"):
        stated.unlink()
    assert leaks(tmp_path) == []
