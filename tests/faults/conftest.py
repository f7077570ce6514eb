"""Lakes with every kind of table that tests begin with, and what they hold when nothing disturbs the next batches."""

from unittest import mock

import pytest
from pyspark.sql import SparkSession

from faults.market import DAYS, make_market
from faults.shop import Content, content, copy_of, run
from lakejoin.orchestration.config import Pipeline
from lakejoin.storage.lake.layout import Lake, rows_of


@pytest.fixture(scope="session")
def folded(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Pipeline:
    """Return a pipeline with two finished batches, folded bases, and input for a third."""
    pipeline = make_market(tmp_path_factory.mktemp("folded") / "market", DAYS[:2])
    with mock.patch("lakejoin.storage.state.folds.BATCHES_BEHIND", 1):
        run(pipeline, spark)
    assert Lake(pipeline.lake).snapshot(rows_of("orders")) is not None
    return make_market(pipeline.path.parent)


@pytest.fixture(scope="session")
def third_batch(folded: Pipeline, tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Content:
    """Return what that lake holds after the third batch."""
    pipeline = copy_of(folded, tmp_path_factory.mktemp("third") / "market")
    assert run(pipeline, spark) == 1
    return content(pipeline, spark)


@pytest.fixture(scope="session")
def market(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Pipeline:
    """Return a pipeline with one finished batch and input for two more."""
    pipeline = make_market(tmp_path_factory.mktemp("market") / "market", DAYS[:1])
    run(pipeline, spark)
    return make_market(pipeline.path.parent)


@pytest.fixture(scope="session")
def undisturbed(market: Pipeline, tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Content:
    """Return what the lake holds in the end."""
    pipeline = copy_of(market, tmp_path_factory.mktemp("undisturbed") / "market")
    assert run(pipeline, spark) == 2
    return content(pipeline, spark)
