"""Counting the records of a batch by what became of them."""

import pytest
from pyspark.sql import SparkSession

from orchestration.batch.tables.verdicts import COUNTS, LOGGED, count_verdicts

_SCHEMA = """_lj_verdict STRING, _lj_op STRING, _lj_derived BOOLEAN, _lj_tie BOOLEAN, _lj_current BOOLEAN,
    _lj_deleted BOOLEAN, _lj_existed BOOLEAN, _lj_inserted BOOLEAN"""


@pytest.mark.spark
def test_log_takes_derived_rows_and_none_that_is_quarantined(spark: SparkSession) -> None:
    """A change of a key is two rows of the log, one of them of no record of its own."""
    rows = [
        ("applied", "upsert", False, False, True, False, False, True),
        ("applied", "delete", True, False, True, True, True, False),
        ("quarantined", None, False, False, False, False, False, False),
        ("duplicate", "upsert", False, False, True, False, True, False),
    ]
    counts = count_verdicts(spark.createDataFrame(rows, _SCHEMA))

    assert counts.pop(LOGGED) == 3
    assert {name: counts[name] for name in COUNTS if counts[name]} == {
        "records": 3,
        "applied": 1,
        "duplicate": 1,
        "quarantined": 1,
        "versions": 2,
        "changed": 2,
        "inserted": 1,
        "removed": 1,
    }
