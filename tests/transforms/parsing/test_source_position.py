"""Positions in the logs of databases: their texts sort as the events were made, reads of snapshots in their place."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from lakejoin.transforms.model.schemas import DETAIL, REASON, SEQUENCE
from lakejoin.transforms.parsing.options import ParseOptions
from tests.transforms.parsing.test_debezium import event, only, parse, table

pytestmark = pytest.mark.spark

Source = Mapping[str, Any]
LSN = "00000027:00000758:"
IN_ORDER: dict[str, list[tuple[str, Source]]] = {
    "postgresql": [
        ("r", {"lsn": None, "snapshot": "incremental"}),
        ("u", {"lsn": 9, "txId": 700}),
        ("u", {"lsn": 150, "txId": 702}),
        ("r", {"lsn": 200, "snapshot": "last"}),
        ("u", {"lsn": 200, "txId": 701}),
        ("d", {"lsn": 1_000_000_000_000, "txId": 1}),
    ],
    "mysql": [
        ("r", {"file": "", "pos": 0, "snapshot": "incremental"}),
        ("r", {"file": "bin.000009", "pos": 154, "row": 0}),
        ("c", {"file": "bin.000009", "pos": 154, "row": 0}),
        ("u", {"file": "bin.000009", "pos": 1000, "row": 0}),
        ("u", {"file": "bin.000009", "pos": 1000, "row": 2}),
        ("u", {"file": "bin.000009", "pos": 1000, "row": 10}),
        ("u", {"file": "bin.000010", "pos": 4, "row": 0}),
        ("d", {"file": "bin.1000000", "pos": 4, "row": 0}),
    ],
    "sqlserver": [
        ("r", {"commit_lsn": f"{LSN}0001", "change_lsn": None}),
        ("c", {"commit_lsn": f"{LSN}0005", "change_lsn": f"{LSN}0003", "event_serial_no": 1}),
        ("u", {"commit_lsn": f"{LSN}0005", "change_lsn": f"{LSN}0003", "event_serial_no": 2}),
        ("u", {"commit_lsn": f"{LSN}0005", "change_lsn": f"{LSN}0004", "event_serial_no": 1}),
        ("u", {"commit_lsn": f"{LSN}000A", "change_lsn": f"{LSN}0002", "event_serial_no": 1}),
        ("d", {"commit_lsn": f"{LSN}000b", "change_lsn": f"{LSN}0002", "event_serial_no": 1}),
    ],
    "oracle": [
        ("r", {"scn": "999"}),
        ("c", {"scn": "1000", "rs_id": " 0x000011.00000123.0010 ", "ssn": 0}),
        ("u", {"scn": "1000", "rs_id": " 0x000011.00000123.0010 ", "ssn": 2}),
        ("u", {"scn": "1000", "rs_id": " 0x000011.00000124.0010 ", "ssn": 0}),
        ("d", {"scn": "281474976710657", "ssn": 0}),
    ],
    "mongodb": [
        ("r", {"ts_ms": 1_700_000_000_000, "ord": 0}),
        ("c", {"ts_ms": 1_700_000_000_000, "ord": 1}),
        ("u", {"ts_ms": 1_700_000_000_000, "ord": 10}),
        ("u", {"ts_ms": 1_700_000_001_000, "ord": 1}),
    ],
}  # fmt: skip


def positions(
    spark: SparkSession, events: Sequence[tuple[str, Source]], epochs: Sequence[int] = ()
) -> list[Row]:
    """The record of each event."""
    spec = table("id int", ["id"], "source string")
    lines = [
        event(op, None if op == "d" else {"id": 1}, {"id": 1} if op == "d" else None, source=dict(source))
        for op, source in events
    ]
    options = ParseOptions("debezium", epochs=tuple(epochs))
    return [only(rows) for rows in parse(spark, spec, lines, options)]


def texts(rows: Sequence[Row]) -> list[str]:
    """The positions of records."""
    return [row[SEQUENCE]["source"] for row in rows]


@pytest.mark.parametrize("connector", IN_ORDER)
def test_positions_sort_as_the_log_does(spark: SparkSession, connector: str) -> None:
    """Numbers by their value, reads before the changes at their place (materialize#5668, DBZ-4329)."""
    events = [(op, {"connector": connector, **source}) for op, source in IN_ORDER[connector]]

    rows = positions(spark, events)

    assert {row[REASON] for row in rows} == {None}
    found = texts(rows)
    assert found == sorted(set(found))


def test_log_that_began_anew_stands_above_the_one_before(spark: SparkSession) -> None:
    """After a move to another server positions may be lower than before; one of the same time is of the new log."""

    def at(time: int | None, lsn: int) -> tuple[str, Source]:
        return "u", {"connector": "postgresql", "ts_ms": time, "lsn": lsn}

    events = [at(None, 1), at(900, 5000), at(1000, 10), at(1999, 20), at(2000, 1)]

    found = texts(positions(spark, events, [1000, 2000]))

    assert found == sorted(found)
    assert [text[:5] for text in found] == ["0000.", "0000.", "0001.", "0001.", "0002."]


@pytest.mark.parametrize(
    "source",
    [
        {"connector": "vitess", "vgtid": "x"}, {"connector": "postgresql"}, {},
        {"connector": "sqlserver", "commit_lsn": "x"}, {"connector": "mysql", "file": "bin", "pos": 1},
    ],
)  # fmt: skip
def test_change_without_a_known_position_is_quarantined(spark: SparkSession, source: Source) -> None:
    """Nothing is guessed: another order would be silently wrong."""
    [row] = positions(spark, [("u", source)])

    assert (row[REASON], row[DETAIL]) == ("null_sequence", "source is null")


def test_event_that_does_not_name_its_connector_is_one_of_postgresql_by_its_lsn(spark: SparkSession) -> None:
    """So do events that a transformation has shortened."""
    named, unnamed = positions(spark, [("u", {"connector": "postgresql", "lsn": 7}), ("u", {"lsn": 7})])

    assert named[SEQUENCE] == unnamed[SEQUENCE]
