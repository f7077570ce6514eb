"""What places share: an S3 server, and the lake they are compared with, two days of the shop worked off locally."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from faults.shop import Content, content, make_shop, run
from places.s3_server import S3Server, s3_server

DAYS = ("2024-01-01", "2024-01-02")


@pytest.fixture(scope="session")
def on_one_machine(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Content:
    """Return every row of every table after two local batches."""
    pipeline = make_shop(tmp_path_factory.mktemp("local") / "shop", DAYS)
    assert run(pipeline, spark) == len(DAYS)
    return content(pipeline, spark)


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    """Return a server that all tests of a module share."""
    with s3_server() as started:
        yield started
