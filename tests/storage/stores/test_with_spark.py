"""What Spark writes: puts of rows and of frames, compaction, other writers, and rows that are marked as deleted."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, LongType, StringType, StructType

from lakejoin.storage.errors import LakeBusy
from lakejoin.storage.stores.errors import NullKey, StoreUnreadable, WrongKey
from lakejoin.storage.stores.kinds.key_value import KeyValueStore
from lakejoin.storage.stores.kinds.session import SessionStore
from lakejoin.storage.stores.kinds.versioned import VersionedKeyValueStore
from lakejoin.storage.stores.kinds.window import WindowStore
from lakejoin.storage.stores.scan.delta_table import TableFiles
from lakejoin.storage.stores.scan.order import Bound, Span
from lakejoin.storage.stores.scan.reader import Reader
from lakejoin.storage.stores.scan.table_columns import Shape, Source
from lakejoin.storage.stores.write.layout import PUT
from stores_without_spark import at

pytestmark = pytest.mark.spark

KEY, VALUE = "key string", StructType().add("value", StringType())


@pytest.fixture
def store(spark: SparkSession, tmp_path: Path) -> KeyValueStore:
    """An empty store of texts."""
    return KeyValueStore.create(spark, str(tmp_path / "store"), KEY, VALUE)


def test_puts_of_rows_and_of_frames_are_a_commit_each(spark: SparkSession, store: KeyValueStore) -> None:
    """The last row of a key counts: by the order given, and by the later put; nulls delete."""
    store.put_all([("a", "1"), ("b", "2"), ("a", "3")])
    rows = [("c", "old", 1), ("c", "new", 2), ("a", None, 3), ("d", "last", 5), ("d", "first", 4)]
    store.put_all(spark.createDataFrame(rows, "key string, value string, number int"), order="number")
    store.put("e", "4")

    assert dict(store.all()) == {"b": "2", "c": "new", "d": "last", "e": "4"}
    assert dict(KeyValueStore.open(store.reader.path).all()) == dict(store.all())
    assert DeltaTable(store.reader.path).version() == 3
    assert spark.read.format("delta").load(store.reader.path).select(PUT).distinct().count() == 3


def test_null_key_in_a_frame_fails_the_whole_put(spark: SparkSession, store: KeyValueStore) -> None:
    """With an error of our own, and without a commit."""
    frame = spark.createDataFrame([("a", "1"), (None, "2")], "key string, value string")
    with pytest.raises(NullKey, match="nothing was put"):
        store.put_all(frame)
    assert list(store.all()) == []
    assert DeltaTable(store.reader.path).version() == 0


def test_frame_without_a_column_and_value_of_another_type_are_refused(
    spark: SparkSession, store: KeyValueStore
) -> None:
    """The message names what is missing, or what was found."""
    with pytest.raises(WrongKey, match="missing: value"):
        store.put_all(spark.createDataFrame([("a",)], "key string"))
    with pytest.raises(WrongKey, match="nothing was put"):
        store.put("a", 7)
    assert DeltaTable(store.reader.path).version() == 0


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (StructType().add("k", "double"), VALUE, "k is a float"),
        (StructType().add("start", "string"), VALUE, "start"),
        (KEY, KEY, "key"),
        (StructType(), VALUE, "at least one column"),
    ],
)
def test_columns_that_a_store_cannot_have_are_refused(
    spark: SparkSession, tmp_path: Path, key: StructType, value: StructType, reason: str
) -> None:
    """Floats as keys, names that the store uses itself, names that are there twice, no columns."""
    with pytest.raises(WrongKey, match=reason):
        WindowStore.create(spark, str(tmp_path / "store"), key, value, window=timedelta(seconds=1))
    assert not (tmp_path / "store").exists()


def test_store_is_not_made_over_a_table(spark: SparkSession, store: KeyValueStore) -> None:
    """Whatever table it is."""
    with pytest.raises(StoreUnreadable, match="there is a table already"):
        KeyValueStore.create(spark, store.reader.path, KEY, VALUE)


def test_keys_and_values_of_several_columns(spark: SparkSession, tmp_path: Path) -> None:
    """A key is a tuple of its columns, a value a dictionary; bytes are a key, too."""
    key = StructType().add("part", BinaryType()).add("number", LongType())
    value = StructType().add("text", StringType()).add("count", LongType())
    store = KeyValueStore.create(spark, str(tmp_path / "store"), key, value)
    store.put((b"\xff", 2), {"text": "a", "count": 1})
    store.put_all([((b"\xff", -1), {"count": 2}), ((b"\x00", 9), {"text": "b"})])

    assert store.get((b"\xff", 2)) == {"text": "a", "count": 1}
    assert [row.key for row in store.all()] == [(b"\x00", 9), (b"\xff", -1), (b"\xff", 2)]
    assert [row.value for row in store.prefix_scan((b"\xff",))] == [
        {"text": None, "count": 2}, {"text": "a", "count": 1},
    ]  # fmt: skip
    with pytest.raises(WrongKey, match="text, count"):
        store.put((b"", 1), {"colour": "red"})


def test_two_writers_at_once_do_not_both_succeed(
    spark: SparkSession, store: KeyValueStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one is told that nothing of its own was put."""
    other = KeyValueStore.open(store.reader.path, spark)
    original = TableFiles.transaction

    def put_meanwhile(self: TableFiles, app: str) -> int | None:
        monkeypatch.setattr(TableFiles, "transaction", original)
        other.put("a", "theirs")
        return original(self, app)

    monkeypatch.setattr(TableFiles, "transaction", put_meanwhile)
    with pytest.raises(LakeBusy, match="someone else put"):
        store.put("a", "ours")
    assert store.get("a") == "theirs"
    store.put("a", "ours")
    assert other.get("a") == "ours"


def test_put_if_absent_does_not_overwrite_what_came_meanwhile(
    spark: SparkSession, store: KeyValueStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its look and its put someone else may put the key."""
    other, look = KeyValueStore.open(store.reader.path, spark), KeyValueStore.get

    def looked_and_late(self: KeyValueStore, key: Any) -> Any:
        found = look(self, key)
        monkeypatch.setattr(KeyValueStore, "get", look)
        other.put(key, "theirs")
        return found

    monkeypatch.setattr(KeyValueStore, "get", looked_and_late)
    with pytest.raises(LakeBusy, match="someone else put"):
        store.put_if_absent("a", "ours")
    assert store.put_if_absent("a", "ours") == "theirs"


def test_compaction_changes_no_answer_and_leaves_one_row_a_key(
    spark: SparkSession, store: KeyValueStore
) -> None:
    """What was superseded or deleted goes; the next put counts on."""
    for number in range(3):
        store.put_all([("a", str(number)), ("b", None if number == 2 else "x"), (f"c{number}", "y")])
    before = list(store.all())
    store.compact()
    assert list(store.all()) == before
    assert store.approximate_num_entries() == len(before) == 4
    store.put("a", "after")
    assert store.get("a") == "after"


@pytest.mark.slow
def test_compaction_keeps_the_last_row_of_a_key_in_one_put(spark: SparkSession, tmp_path: Path) -> None:
    """The put of a key at one place and time counts that came last, by the order of the entries or the one given."""
    entries = [("a", "3"), ("a", "1"), ("b", "x"), ("a", "2"), ("b", None)]
    key_value = KeyValueStore.create(spark, str(tmp_path / "key-value"), KEY, VALUE)
    key_value.put_all(entries)
    window = WindowStore.create(spark, str(tmp_path / "window"), KEY, VALUE, window=timedelta(seconds=1))
    window.put_all([(key, value, at(0)) for key, value in entries])
    ordered = KeyValueStore.create(spark, str(tmp_path / "ordered"), KEY, VALUE)
    rows = [("a", "2", 3), ("a", "3", 1), ("a", "1", 2)]
    ordered.put_all(spark.createDataFrame(rows, "key string, value string, number int"), order="number")
    for store in (key_value, window, ordered):
        for _ in range(2):
            assert [(row.key, row.value) for row in store.all()] == [("a", "2")]
            store.compact()
    assert [store.reader.estimate() for store in (key_value, ordered)] == [1, 1]


def test_columns_may_be_called_as_what_stores_work_with(spark: SparkSession, tmp_path: Path) -> None:
    """Reads that merge several puts, and a compaction, tell them from their own."""
    value = StructType().add("_row", StringType()).add("_run", StringType())
    store = KeyValueStore.create(spark, str(tmp_path), "last string", value)
    for text in ("old", "new"):
        store.put_all([(key, {"_row": text, "_run": key}) for key in "ab"])

    expected = [(key, {"_row": "new", "_run": key}) for key in "ab"]
    assert list(store.all()) == expected
    store.compact()
    assert list(store.all()) == expected


def test_put_during_a_compaction_is_kept(spark: SparkSession, store: KeyValueStore) -> None:
    """Only the rows that were put before it are replaced."""
    store.put_all([("a", "1"), ("b", "2")])
    other = KeyValueStore.open(store.reader.path, spark)

    def keep(rows: DataFrame) -> DataFrame:
        other.put_all([("b", "meanwhile"), ("c", "3")])
        return rows

    store._writer.compact(keep, store._writer.last_put, 1)
    assert dict(store.all()) == {"a": "1", "b": "meanwhile", "c": "3"}


@pytest.mark.slow
def test_compaction_of_windows_and_sessions_drops_what_has_expired(
    spark: SparkSession, tmp_path: Path
) -> None:
    """And keeps the newest time, even where its row was deleted."""
    retention = timedelta(seconds=10)
    window = WindowStore.create(
        spark, str(tmp_path / "window"), KEY, VALUE, window=retention, retention=retention
    )
    window.put_all([("a", "gone", at(0)), ("a", "kept", at(9)), ("b", "x", at(15)), ("b", None, at(15))])
    session = SessionStore.create(spark, str(tmp_path / "session"), KEY, VALUE, retention=retention)
    session.put_all([("a", at(0), at(5), "gone"), ("a", at(0), at(9), "kept"), ("b", at(1), at(15), None)])
    for store, found in ((window, window.all), (session, lambda: session.fetch_range(None, None))):
        for _ in range(2):
            assert [row.value for row in found()] == ["kept"]
            store.compact()
            assert store.reader.estimate() == 2


def test_newest_time_that_is_put_while_a_compaction_begins_is_kept(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though its row is a delete: what a store has observed never goes back."""
    retention = timedelta(seconds=10)
    store = VersionedKeyValueStore.create(spark, str(tmp_path), KEY, VALUE, history_retention=retention)
    store.put("a", "1", at(0))

    def meanwhile(*_: object) -> None:
        VersionedKeyValueStore.open(str(tmp_path), spark).put("b", None, at(30))

    monkeypatch.setattr("lakejoin.storage.stores.kinds.compaction.bound_of", meanwhile)
    store.compact()
    monkeypatch.undo()
    assert not store.put("a", "late", at(1)).accepted


@pytest.mark.slow
def test_compaction_of_versions_forgets_history_and_nothing_else(spark: SparkSession, tmp_path: Path) -> None:
    """What ended before the retention goes; a latest version stays, unless it is a delete."""
    store = VersionedKeyValueStore.create(
        spark, str(tmp_path / "store"), KEY, VALUE, history_retention=timedelta(seconds=10)
    )
    early = [("a", "1", at(0)), ("b", "old", at(1)), ("c", "x", at(2)), ("c", None, at(3)), ("a", "2", at(5))]
    counts = store.put_all([*early, ("a", "3", at(14)), ("d", "new", at(20)), ("a", "late", at(9))])
    assert (counts.accepted, counts.expired) == (7, 1)

    def answers() -> list[Any]:
        listed = [list(store.versions(key, at(10), None)) for key in "abcd"]
        return [*listed, *[store.get_as_of(key, at(t)) for key in "abcd" for t in (1, 9, 10, 12, 20)]]

    before = answers()
    store.compact()
    assert answers() == before
    assert [version.value for version in store.backward_versions("a", None, None)] == ["3", "2"]
    assert store.reader.estimate() == 4


def test_versions_of_a_frame_are_refused_one_after_the_other(spark: SparkSession, tmp_path: Path) -> None:
    """In the order given: a row is too old by what came before it, not by what comes later."""
    store = VersionedKeyValueStore.create(
        spark, str(tmp_path / "store"), KEY, VALUE, history_retention=timedelta(seconds=10)
    )
    rows = [("a", "1", at(5), 1), ("b", "2", at(30), 3), ("b", "late", at(19), 4), ("a", "3", at(0), 2)]
    frame = spark.createDataFrame(rows, "key string, value string, valid_from timestamp, number long")
    counts = store.put_all(frame.repartition(2), order="number")
    assert (counts.accepted, counts.expired) == (3, 1)
    assert store.put("b", "late", at(19)).accepted is False
    assert store.get_as_of("a", at(40)) == ("1", at(5), None)
    assert store.get("b") == ("2", at(30), None)


def test_versions_of_the_year_1_are_versions_like_any_other(spark: SparkSession, tmp_path: Path) -> None:
    """Nothing is old enough to be refused after them; what they were replaced by does not make them newer."""
    retention, first = timedelta(days=1), datetime(1, 1, 1, tzinfo=UTC)
    store = VersionedKeyValueStore.create(spark, str(tmp_path), KEY, VALUE, history_retention=retention)

    assert store.put_all([("a", "1", first), ("a", "2", first + retention)]) == (2, 0)
    store.compact()
    assert store.put_all([("a", "3", first + 3 * retention), ("a", "late", first)]) == (1, 1)
    store.compact()

    assert [version.value for version in store.versions("a", None, None)] == ["2", "3"]


def test_rows_that_are_marked_as_deleted_are_not_read(spark: SparkSession, tmp_path: Path) -> None:
    """In no direction and by no way, over several row groups; Spark's own reading says which there are."""
    path = str(tmp_path / "table")
    spark.conf.set("parquet.block.size", 64 * 1024)
    try:
        rows = spark.range(40_000).select(F.col("id"), F.sha2(F.col("id").cast("string"), 256).alias("text"))
        rows.repartitionByRange(2, "id").sortWithinPartitions("id").write.format("delta").option(
            "delta.enableDeletionVectors", "true"
        ).save(path)
    finally:
        spark.conf.unset("parquet.block.size")
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id % 7 = 3 OR id BETWEEN 10000 AND 10500 OR id = 39999")
    assert any(file.kept is not None for file in TableFiles(path).files(()))

    reader = Reader([Source(path)], Shape(key=(("id",),), columns=("id", "text")))
    with reader.tables[0].reading(reader.tables[0].files(())[0].name) as file:
        assert file.num_row_groups > 1
    expected = [tuple(row) for row in spark.read.format("delta").load(path).orderBy("id").collect()]
    assert [tuple(row.values()) for row in reader.rows(Span())] == expected
    assert [tuple(row.values()) for row in reader.rows(Span(), reverse=True)] == expected[::-1]
    ranged = Span(Bound((9_990,)), Bound((10_510,)))
    assert [row["id"] for row in reader.rows(ranged)] == [n for n, _ in expected if 9_990 <= n <= 10_510]
    assert [list(reader.rows(Span(Bound((n,)), Bound((n,))))) for n in (3, 10_200, 39_999)] == [[], [], []]
    assert reader.estimate() == len(expected)


@pytest.mark.slow
def test_ten_million_rows_are_read_from_two_files_at_most(spark: SparkSession, tmp_path: Path) -> None:
    """Of 20 files or more: the last five of a key in a range of time, the first and the last five, a point get."""
    rows, keys = 10_000_000, 1_000
    of_a_key = rows // keys
    path = str(tmp_path / "store")
    window = timedelta(seconds=1)
    store = WindowStore.create(
        spark, path, StructType().add("key", LongType()), StructType().add("value", LongType()), window=window
    )
    numbers = spark.range(0, rows, 1, 24).select(
        F.floor(F.col("id") / of_a_key).cast("long").alias("key"),
        F.timestamp_seconds(F.col("id") % of_a_key).alias("start"),
        F.col("id").alias("value"),
    )
    spark.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "false")
    spark.conf.set("spark.sql.shuffle.partitions", "24")
    try:
        store.put_all(numbers)
    finally:
        spark.conf.unset("spark.sql.adaptive.coalescePartitions.enabled")
        spark.conf.set("spark.sql.shuffle.partitions", "2")
    assert len(store.reader.tables[0].files(())) >= 20

    def opened_by(read: Any) -> tuple[list[int], int]:
        fresh = WindowStore.open(path)
        found = read(fresh)
        values = [next(found).value for _ in range(5)]
        return values, len(fresh.reader.opened)

    first = 417 * of_a_key
    for read, expected in (
        (lambda s: s.backward_fetch(417, at(2000), at(8000)), [first + n for n in range(8000, 7995, -1)]),
        (lambda s: s.all(), [0, 1, 2, 3, 4]),
        (lambda s: s.backward_all(), [rows - n for n in range(1, 6)]),
    ):
        values, files = opened_by(read)
        assert values == expected
        assert files <= 2
    fresh = WindowStore.open(path)
    assert fresh.fetch_one(417, at(5000)) == first + 5000
    assert len(fresh.reader.opened) <= 2
