"""Fixtures for all tests: one Spark session for the whole run, and a fresh place for a lake."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import settings
from pyspark.sql import SparkSession
from xdist.scheduler import LoadFileScheduling

import guards
from faults.lakes import forget_logs
from lakejoin.storage.spark.session import start_session
from reliability import Report

pytest_plugins = ["tiny_lake"]

# No command that a test starts leaves its JVM to others, but where engines are what is tested.
os.environ["CI"] = "true"

# Spark makes the time of an example uneven; the blob repeats a failure elsewhere.
settings.register_profile("lakejoin", deadline=None, print_blob=True)
settings.load_profile("lakejoin")


OF_THE_TINY_LAKE = {
    "tests/behaviour/test_joined_hashes.py",
    "tests/behaviour/test_stores_docs.py",
    "tests/behaviour/test_tiny_cases.py",
    "tests/orchestration/demo/test_departures.py",
    "tests/orchestration/show/test_stores.py",
    "tests/orchestration/show/test_tables.py",
}
"""The files that look at the lake of `tiny_days`, which takes longest of all to make."""


class TinyLakeOnce(LoadFileScheduling):  # type: ignore[misc] # xdist's has no types
    """Gives each file to a worker of `-n`, and those of the tiny lake to the same one."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return "the tiny lake" if file in OF_THE_TINY_LAKE else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling | None:
    """Return our way to give files to workers, where they are given by file."""
    return TinyLakeOnce(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes the page of failures and bad input."""
    parser.addoption(
        "--reliability", metavar="FILE", type=Path, help="write the tables of docs/reliability.md"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Run marked tests without their guards as well; collect what the tables are made of, if they are asked for."""
    config.pluginmanager.register(guards)
    if page := config.getoption("reliability"):
        if {(config.invocation_params.dir / path).resolve() for path in config.args} != {
            Path(__file__).parent
        }:
            raise pytest.UsageError(
                f"--reliability: found {' '.join(config.args)}; expected `tests`, for a row that no collected test is "
                "about is written as one without any. Choose tests by -k or -m, not by their paths"
            )
        config.pluginmanager.register(Report(page))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Return the session that all tests share, tuned for tables of a few rows."""
    session = start_session(
        "local[2]",
        {
            # with little room for what is young, a sixth of the time went into moving it
            "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -Xms2g -Xmn1g",
            "spark.sql.shuffle.partitions": "2",
        },
        formats=["avro"],
    )
    # What a frame holds in the JVM is free once Python has collected the frame, which lies in a circle of references.
    # With all tests among its objects Python hardly ever does.
    gc.freeze()
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def forgetting(request: pytest.FixtureRequest) -> Iterator[None]:
    """Nothing of a test's tables stays in the JVM: Delta's cache would fill it, and it would do little but collect."""
    yield
    if "spark" in request.fixturenames:
        forget_logs(request.getfixturevalue("spark"))


@pytest.fixture(scope="module")
def prunes() -> Iterator[None]:
    """Files and pages are held against a batch's keys however few rows they have."""
    with (
        patch("lakejoin.storage.delta_table.file_pruning.WORTH_ROWS", 1),
        patch("lakejoin.storage.delta_table.file_pruning.WORTH_VALUES", 1),
        patch("lakejoin.storage.delta_table.file_pruning.LARGE_FILE", 1),
        patch("lakejoin.storage.state.folds.LARGE_TABLE", 1),
    ):
        yield


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Return the path of a lake that does not exist yet."""
    return tmp_path / "lake"
