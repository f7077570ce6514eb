"""Counting the records of a batch by what became of them."""

import pytest
from pyspark.sql import SparkSession

from lakejoin.orchestration.batch.tables.verdicts import LOGGED, count_verdicts
from lakejoin.transforms.model.schemas import INSERTED

IGNORED_KINDS = ("heartbeat", "heartbeat", "other_table")
_SCHEMA = """_lj_verdict STRING, _lj_op STRING, _lj_derived BOOLEAN, _lj_tie BOOLEAN, _lj_current BOOLEAN,
    _lj_deleted BOOLEAN, _lj_existed BOOLEAN, _lj_inserted BOOLEAN, _lj_detail STRING"""


@pytest.mark.spark
def test_log_takes_derived_rows_and_none_that_is_quarantined(spark: SparkSession) -> None:
    """A change of a key is two rows of the log, one of them of no record of its own; what is ignored has a kind."""
    rows = [
        ("applied", "upsert", False, False, True, False, False, True, None),
        ("applied", "delete", True, False, True, True, True, False, None),
        ("quarantined", None, False, False, False, False, False, False, "heartbeat"),
        ("duplicate", "upsert", False, False, True, False, True, False, None),
        *[("ignored", "ignored", False, False, False, False, False, False, kind) for kind in IGNORED_KINDS],
    ]
    counts = count_verdicts(spark.createDataFrame(rows, _SCHEMA))

    assert counts.pop(LOGGED) == 6
    assert {name: count for name, count in counts.items() if count and name != INSERTED} == {
        "records": 6,
        "applied": 1,
        "duplicate": 1,
        "ignored": 3,
        "ignored_heartbeat": 2,
        "ignored_other_table": 1,
        "quarantined": 1,
        "versions": 2,
        "changed": 2,
        "inserted": 1,
        "removed": 1,
    }
