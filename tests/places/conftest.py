"""The lake that all places are compared with: the shop's first two days, worked off by the session of the tests."""

import pytest
from pyspark.sql import SparkSession

from faults.shop import Content, content, make_shop, run

DAYS = ("2024-01-01", "2024-01-02")


@pytest.fixture(scope="session")
def on_one_machine(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Content:
    """Return every row of every table after two local batches."""
    pipeline = make_shop(tmp_path_factory.mktemp("local") / "shop", DAYS)
    assert run(pipeline, spark) == len(DAYS)
    return content(pipeline, spark)
