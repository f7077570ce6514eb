"""What is printed of finished batches."""

from collections.abc import Mapping
from datetime import UTC, date, datetime

import pytest

from lakejoin.orchestration.cli.summary import batch_line, print_tables
from lakejoin.storage.lake.plan import Published

READ = {"orders": {"records": 1200}, "customers": {"records": 34}}


def finished(joins: Mapping[str, Mapping[str, int]]) -> Published:
    """Return a batch of two days that read two tables."""
    days = (date(2026, 11, 27), date(2026, 11, 28))
    return Published(3, "batch", datetime(2026, 11, 28, tzinfo=UTC), days, {}, {}, READ, joins, {}, {})


@pytest.mark.parametrize(
    ("joins", "said"),
    [
        ({}, ""),
        ({"a": {"emissions": 0}}, ", 0 joined rows changed"),
        ({"a": {"emissions": 5}, "b": {"emissions": 1000}}, ", 1,005 joined rows changed"),
    ],
)
def test_batch_tells_of_joined_rows_where_there_are_joins(
    joins: Mapping[str, Mapping[str, int]], said: str
) -> None:
    """Tables may be kept without joining them; what never is there is not counted."""
    assert batch_line(finished(joins)) == f"batch 3 2026-11-27 to 2026-11-28: 1,234 records{said}"


def test_ignored_records_are_told_by_kind_behind_their_sum(capsys: pytest.CaptureFixture[str]) -> None:
    """A heartbeat is no schema change; a kind that no table met is not named."""
    kinds = {"ignored": 3, "ignored_heartbeat": 2, "ignored_schema_change": 1, "ignored_transaction": 0}

    print_tables({"orders": {"records": 9, "applied": 6, **kinds}, "customers": {"records": 1, "applied": 1}})

    assert capsys.readouterr().out.splitlines() == [
        "Records by table",
        "  table      records  applied  ignored  ignored_heartbeat  ignored_schema_change",
        "  orders           9        6        3                  2                      1",
        "  customers        1        1        0                  0                      0",
    ]
