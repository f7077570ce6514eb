"""What a store says to frames that it cannot take, to durations it cannot have, and to a session that was stopped."""

from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from lakejoin.storage.stores.errors import (
    NullKey,
    StoreReadOnly,
    StoreUnreadable,
    WrongDuration,
    WrongKey,
    WrongRange,
)
from lakejoin.storage.stores.kinds.key_value import KeyValueStore
from lakejoin.storage.stores.kinds.session import SessionStore
from lakejoin.storage.stores.kinds.versioned import VersionedKeyValueStore
from lakejoin.storage.stores.kinds.window import WindowStore
from stores_without_spark import at

pytestmark = pytest.mark.spark

KEY, VALUE = "key int", "value decimal(9,1)"
SECOND = timedelta(seconds=1)
TIME = "now() AS valid_from"


@pytest.fixture(scope="module")
def versioned(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> VersionedKeyValueStore:
    """A store with times, whose key and value are numbers."""
    path = str(tmp_path_factory.mktemp("frames") / "store")
    return VersionedKeyValueStore.create(spark, path, KEY, VALUE, history_retention=10 * SECOND)


@pytest.mark.parametrize(
    ("columns", "order", "message"),
    [
        (["1.5D AS key", "1 AS value", TIME], None, "expected int in the column key, found double; cast it"),
        (["'1' AS key", "1 AS value", TIME], None, "expected int in the column key, found string; cast it"),
        (["true AS key", "1 AS value", TIME], None, "expected int in the column key, found boolean; cast it"),
        (["1 AS key", "1.25 AS value", TIME], None, r"decimal\(9,1\) in .* value, found decimal\(3,2\)"),
        (["1 AS key", "1.5D AS value", TIME], None, r"decimal\(9,1\) in .* value, found double"),
        (
            ["1 AS key", "1 AS value", "1 AS valid_from"],
            None,
            "timestamp in the column valid_from, found int",
        ),
        (["1 AS key", "1 AS value", "current_date() AS valid_from"], None, "column valid_from, found date"),
        (["1 AS key", "1 AS value"], None, "columns key, valid_from, value, missing: valid_from; add"),
        (["2147483648 AS key", "1 AS value", TIME], None, "found one that is too large"),
        (["1 AS key", "123456789 AS value", TIME], None, "found one that is too large"),
        (["1 AS key", "1 AS value", TIME], "n", "a column of key, value, valid_from, found 'n'; name"),
        (["1 AS key", "1 AS value", TIME, "'a' AS n"], "n", "timestamps in n, .*, found string; cast it"),
    ],
)
def test_frame_that_does_not_fit_is_refused(
    spark: SparkSession,
    versioned: VersionedKeyValueStore,
    columns: list[str],
    order: str | None,
    message: str,
) -> None:
    """With what was expected and found, and without a commit."""
    with pytest.raises(WrongKey, match=message) as refused:
        versioned.put_all(spark.sql(f"SELECT {', '.join(columns)}"), order=order)
    assert str(refused.value).startswith(f"put_all(): {versioned.reader.path}: expected ")
    assert DeltaTable(versioned.reader.path).version() == 0


def test_frame_of_narrower_types_is_taken(spark: SparkSession, tmp_path: Path) -> None:
    """Whole numbers by columns of any numbers, a decimal by one of more places, a bare NULL by any column."""
    value = "a double, b decimal(9,2), c bigint, d string"
    store = KeyValueStore.create(spark, str(tmp_path / "store"), KEY, value)
    store.put_all(spark.sql("SELECT 7L AS key, 1 AS a, 1.5 AS b, 2 AS c, NULL AS d"))
    assert store.get(7) == {"a": 1.0, "b": 1.5, "c": 2, "d": None}


def test_key_of_a_frame_with_one_column_null_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Whichever of the columns it is, and with it the whole put."""
    store = KeyValueStore.create(spark, str(tmp_path / "store"), "a int, b string", VALUE)
    for part in ("1 AS a, CAST(NULL AS string) AS b", "CAST(NULL AS int) AS a, 'x' AS b"):
        with pytest.raises(
            NullKey, match=r"^put_all\(\): .*expected a, b not to be null, found a row with null in"
        ):
            store.put_all(spark.sql(f"SELECT 1 AS a, 'x' AS b, 1 AS value UNION ALL SELECT {part}, 1"))
    assert list(store.all()) == []


def test_session_of_a_frame_that_ends_before_it_starts_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    """And with it the whole put."""
    store = SessionStore.create(spark, str(tmp_path / "store"), "key string", "value string")
    rows = [("a", at(0), at(1), "x"), ("b", at(2), at(1), "y")]
    frame = spark.createDataFrame(rows, "key string, start timestamp, end timestamp, value string")
    with pytest.raises(
        WrongRange, match=r"^put_all\(\): .*expected sessions that end no earlier than they start"
    ):
        store.put_all(frame)
    assert DeltaTable(store.reader.path).version() == 0
    store.put_all(frame.where("key = 'a'"))
    assert [row.value for row in store.fetch("a")] == ["x"]


@pytest.mark.parametrize(
    ("window", "retention", "message"),
    [
        (None, None, "expected a length of windows, found None; give"),
        (-SECOND, None, "expected a window of no time or more, found datetime.timedelta"),
        (SECOND, -SECOND, "expected a retention of no time or more, found datetime.timedelta"),
        (SECOND, 10, "expected a retention of no time or more, found 10; give a timedelta"),
        (
            2 * SECOND,
            SECOND,
            "expected a retention no shorter than the window of 0:00:02, found 0:00:01; windows",
        ),
    ],
)
def test_duration_that_no_store_can_have_is_refused(
    spark: SparkSession, tmp_path: Path, window: Any, retention: Any, message: str
) -> None:
    """As Kafka refuses it (IllegalArgumentException), before a table is made."""
    with pytest.raises(WrongDuration, match=rf"^create\(\): .*{message}"):
        WindowStore.create(spark, str(tmp_path / "store"), KEY, VALUE, window=window, retention=retention)
    assert not (tmp_path / "store").exists()


def test_store_is_made_once_and_says_so(spark: SparkSession, versioned: VersionedKeyValueStore) -> None:
    """The message names the method that was called."""
    with pytest.raises(StoreUnreadable, match=r"^create\(\): .*expected no table, found .*; open it"):
        KeyValueStore.create(spark, versioned.reader.path, KEY, VALUE)


def test_session_that_was_stopped_writes_nothing(versioned: VersionedKeyValueStore) -> None:
    """Neither a put nor a compaction."""
    stopped: Any = SimpleNamespace(
        sparkContext=SimpleNamespace(_jsc=None), createDataFrame=versioned._writer.spark.createDataFrame
    )
    store = VersionedKeyValueStore.open(versioned.reader.path, stopped)
    for method, call in (("put", lambda: store.put(1, None, at(0))), ("compact", store.compact)):
        with pytest.raises(
            StoreReadOnly, match=rf"^{method}\(\): .*expected a Spark session that runs, found .*; open"
        ):
            call()
    assert DeltaTable(versioned.reader.path).version() == 0
