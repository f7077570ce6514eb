"""A small sound state of a join, as rows of the five frames, for tests that then break one thing in it."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from lakejoin.expectations.keys import Kind

Row = dict[str, Any]
State = dict[str, list[Row]]

HASH = pa.struct([("spec", pa.int16()), ("high", pa.int64()), ("low", pa.int64())])
LEFT = pa.struct([("flight_id", pa.int64())])
RIGHT = pa.struct([("tailnum", pa.string())])
TIME = pa.timestamp("us", "UTC")
HOURS = [datetime(2013, 1, 1, hour, tzinfo=UTC) for hour in range(4)]
SCHEMAS = {
    "left_rows": {"primary_key": LEFT, "foreign_key": RIGHT, "hash": HASH, "deleted": pa.bool_()},
    "right_rows": {"primary_key": RIGHT, "hash": HASH, "deleted": pa.bool_()},
    "subscriptions": {"foreign_key": RIGHT, "primary_key": LEFT, "hash": HASH},
    "joined": {
        "primary_key": LEFT,
        "left_hash": HASH,
        "right_key": RIGHT,
        "right_hash": HASH,
        "batch": pa.int64(),
        "filtered": pa.bool_(),
    },
    "answers": {"primary_key": LEFT, "foreign_key": RIGHT, "hash": HASH, "cause": pa.string()},
    "expected": {"primary_key": LEFT, "hash": HASH},
    "found": {"primary_key": LEFT, "hash": HASH, "batch": pa.int64()},
    "kept": {"primary_key": LEFT, "begun": pa.int64(), "ended": pa.int64(), "hash": HASH},
    "shown": {"primary_key": LEFT, "hash": HASH},
    "spells": {"primary_key": LEFT, "valid_from": TIME, "valid_to": TIME, "hash": HASH},
    "moments": {"primary_key": LEFT, "moment": TIME, "hash": HASH},
    "totals": {"primary_key": LEFT, "rows": pa.int64(), "rest": pa.bool_()},
    "rows": {"primary_key": LEFT, "hash": HASH, "deleted": pa.bool_()},
    "versions": {"primary_key": LEFT, "valid_from": TIME, "valid_to": TIME},
    "latest": {"primary_key": LEFT, "hash": HASH},
    "records": {"primary_key": LEFT, "hash": HASH},
    "waiting": {"primary_key": LEFT},
    "late": {"primary_key": LEFT},
    "batches": {
        "primary_key": LEFT,
        "clock": TIME,
        "clock_before": TIME,
        **dict.fromkeys(("received", "sorted", "waited", "left_waiting", "emitted", "kept"), pa.int64()),
        **dict.fromkeys(("waiting", "in_buffer"), pa.int64()),
    },
}


def hashed(value: int | None) -> Row | None:
    """Return the hash of a value; the value stands for itself."""
    return None if value is None else {"spec": 1, "high": value, "low": -value}


def filled(frame: str, *values: object) -> Row:
    """Return a row of a frame: plain values become the keys and hashes that its columns hold."""
    row: Row = {}
    schema = SCHEMAS[frame]
    if frame == "joined" and len(values) < len(schema):
        values = (*values, False)
    for (column, dtype), value in zip(schema.items(), values, strict=True):
        if dtype is HASH:
            row[column] = hashed(value)  # type: ignore[arg-type]
        elif dtype in (LEFT, RIGHT):
            row[column] = None if value is None else {dtype.field(0).name: value}
        else:
            row[column] = value
    return row


def sound_state(kind: Kind) -> State:
    """Return a state in which every rule holds.

    Flights: 1 and 2 with their planes, 3 without a tail number, 4 deleted, 5 whose plane never came, 6
    whose plane was deleted. The answers include what a log remembers: one to an older value of flight 6, the
    retraction when flight 3 lost its plane, the one when flight 4 was deleted.
    """
    if kind in {"history", "event_versions", "stream", "stream_left", "batches"}:
        return _sound_times(kind)
    if kind in {"table", "groups", "totals", "versions"}:
        return _sound_results(kind)
    if kind == "members":
        state = sound_state("inner")
        return {name: state[name] for name in ("left_rows", "subscriptions")}
    unmatched = [filled("joined", key, key + 10, None, None, 3) for key in (3, 5, 6)]
    return {
        "left_rows": [
            filled("left_rows", 1, "A", 11, False),
            filled("left_rows", 2, "B", 12, False),
            filled("left_rows", 3, None, 13, False),
            filled("left_rows", 4, None, None, True),
            filled("left_rows", 5, "Z", 15, False),
            filled("left_rows", 6, "C", 16, False),
        ],
        "right_rows": [
            filled("right_rows", "A", 21, False),
            filled("right_rows", "B", 22, False),
            filled("right_rows", "C", None, True),
        ],
        "subscriptions": [
            filled("subscriptions", "A", 1, 11),
            filled("subscriptions", "B", 2, 12),
            filled("subscriptions", "Z", 5, 15),
            filled("subscriptions", "C", 6, 16),
        ],
        "joined": [
            filled("joined", 1, 11, "A", 21, 1),
            filled("joined", 2, 12, "B", 22, 2),
            *(unmatched if kind == "left" else []),
        ],
        "answers": [
            filled("answers", 1, "A", 11, "subscription"),
            filled("answers", 2, "B", 12, "right_change"),
            filled("answers", 3, "A", 13, "subscription"),
            filled("answers", 4, "A", None, "subscription"),
            filled("answers", 6, "B", 96, "subscription"),
        ],
    }


def _sound_results(kind: Kind) -> State:
    """A row that lives and a tombstone; two groups; their totals; two rows of a result, one of which was another."""
    rows: dict[str, list[tuple[object, ...]]] = {
        "table": [("rows", 1, 11, False), ("rows", 4, None, True)],
        "groups": [("expected", 1, 11), ("expected", 2, 12), ("found", 1, 11, 1), ("found", 2, 12, 2)],
        "totals": [("totals", 1, 2, True), ("totals", 2, 0, False)],
        "versions": [
            ("kept", 1, 1, 2, 10), ("kept", 1, 2, None, 11), ("kept", 2, 1, None, 12),
            ("shown", 1, 11), ("shown", 2, 12),
        ],
    }  # fmt: skip
    found: State = {}
    for frame, *values in rows[kind]:
        found.setdefault(str(frame), []).append(filled(str(frame), *values))
    return found


def _sound_times(kind: Kind) -> State:
    """Station 1 was seen twice, station 2 is gone; flight 1 is joined, 2 waits, 3 came late; two batches of flights."""
    if kind == "history":
        return {
            "versions": [
                filled("versions", 1, HOURS[1], HOURS[2]),
                filled("versions", 1, HOURS[2], None),
                filled("versions", 2, HOURS[1], HOURS[3]),
                filled("versions", 2, HOURS[3], None),
            ],
            "latest": [filled("latest", 1, 11)],
            "rows": [filled("rows", 1, 11, False)],
        }
    if kind == "event_versions":
        return {
            "spells": [
                filled("spells", 1, HOURS[1], HOURS[2], 10),
                filled("spells", 1, HOURS[2], None, 11),
                filled("spells", 2, HOURS[1], HOURS[3], 12),
            ],
            "moments": [
                filled("moments", 1, HOURS[1], 10),
                filled("moments", 1, HOURS[2], 11),
                filled("moments", 2, HOURS[2], 12),
                filled("moments", 2, HOURS[3], None),
            ],
        }
    if kind == "batches":
        return {
            "batches": [
                filled("batches", 1, HOURS[2], None, 5, 5, 3, 3, None, 4, 1, None),
                filled("batches", 2, HOURS[2], HOURS[2], 0, 0, 1, 1, 2, 2, 1, 1),
            ]
        }
    return {
        "records": [filled("records", key, key + 10) for key in (1, 2, 3)],
        "joined": [filled("joined", 1, 11, None, None, 1)],
        "waiting": [filled("waiting", 2)],
        "late": [filled("late", 3)],
    }


@pytest.fixture
def sound() -> Callable[[Kind], State]:
    """Return the maker of sound states."""
    return sound_state


@pytest.fixture
def row() -> Callable[..., Row]:
    """Return the maker of rows."""
    return filled


@pytest.fixture
def tables() -> Callable[[State], dict[str, pa.Table]]:
    """Return what turns a state into Arrow tables, which DuckDB reads as they are."""

    def build(state: State) -> dict[str, pa.Table]:
        return {name: pa.Table.from_pylist(rows, pa.schema(SCHEMAS[name])) for name, rows in state.items()}

    return build


@pytest.fixture
def frames(
    spark: SparkSession, tables: Callable[[State], dict[str, pa.Table]]
) -> Callable[[State], dict[str, DataFrame]]:
    """Return what turns a state into Spark frames."""

    def build(state: State) -> dict[str, DataFrame]:
        return {name: spark.createDataFrame(table) for name, table in tables(state).items()}

    return build
