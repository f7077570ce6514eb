"""Reads open the files that can hold the next rows, in either direction, and no others."""

from datetime import date, timedelta
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, WriterProperties, write_deltalake

from lakejoin.storage.stores.errors import StoreUnreadable
from lakejoin.storage.stores.kinds.window import WindowStore
from lakejoin.storage.stores.scan.order import Between, Bound, Span
from lakejoin.storage.stores.scan.reader import Reader
from lakejoin.storage.stores.scan.table_columns import Shape, Source
from lakejoin.storage.stores.write.layout import DELETED, OBSERVED, PLACE, PROPERTY, PUT, Layout
from lakejoin.transforms.model.event_time import EPOCH

KEYS, FILES, ROWS = 100, 20, 200_000
OF_A_KEY = ROWS // KEYS
SECOND = timedelta(seconds=1)
LAYOUT = Layout("window", ("key",), ("value",), window=SECOND)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    """200,000 rows of 100 keys, a row a second, in 20 files that follow each other, of ten row groups each."""
    path = str(tmp_path_factory.mktemp("lazy") / "store")
    numbers = pa.array(range(ROWS))
    seconds = pc.subtract(numbers, pc.multiply(pc.divide(numbers, OF_A_KEY), OF_A_KEY))
    rows = pa.table(
        {
            "key": pc.binary_join_element_wise(
                "k", pc.utf8_lpad(pc.divide(numbers, OF_A_KEY).cast("string"), 3, "0"), ""
            ),
            "start": pc.multiply(seconds, 1_000_000).cast(pa.timestamp("us", "UTC")),
            DELETED: pa.repeat(False, ROWS),
            PUT: pa.repeat(1, ROWS),
            PLACE: numbers,
            OBSERVED: pc.multiply(seconds, 1_000_000),
            "value": numbers,
        }
    )
    size = ROWS // FILES
    _create(path, rows.schema)
    for first in range(0, ROWS, size):
        write_deltalake(
            path, rows.slice(first, size), mode="append",
            writer_properties=WriterProperties(max_row_group_size=size // 10),
        )  # fmt: skip
    return path


@pytest.fixture
def store(table: str) -> WindowStore:
    """The store of these rows, freshly opened."""
    return WindowStore.open(table)


def test_table_has_the_files_it_is_to_have(store: WindowStore) -> None:
    """The tests below would say nothing of one file."""
    assert len(store.reader.tables[0].files((("key",),))) == FILES
    assert store.reader.remarks() == []
    assert store.reader.opened == []


@pytest.mark.parametrize("key", ["k000", "k042", "k044", "k099"])
def test_last_rows_of_a_key_in_a_range_of_time_take_two_files_at_most(store: WindowStore, key: str) -> None:
    """Newest first, the last ones that start in the range."""
    found = list(islice(store.backward_fetch(key, EPOCH + 100 * SECOND, EPOCH + 1500 * SECOND), 5))
    assert [(row.start - EPOCH) // SECOND for row in found] == [1500, 1499, 1498, 1497, 1496]
    assert {row.key for row in found} == {key}
    assert len(store.reader.opened) <= 2


def test_first_and_last_rows_of_everything_take_a_file_each(store: WindowStore) -> None:
    """The first five need the first file, the last five the last one."""
    assert [row.value for row in islice(store.all(), 5)] == [0, 1, 2, 3, 4]
    assert len(store.reader.opened) == 1
    assert [row.value for row in islice(store.backward_all(), 5)] == [ROWS - n for n in (1, 2, 3, 4, 5)]
    assert len(store.reader.opened) == 2


def test_point_get_reads_one_row_group(store: WindowStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a file only what can hold the row is read: once for its place and once for its value."""
    read: list[int] = []
    original = pa.parquet.ParquetFile.read_row_group

    def counted(self: pa.parquet.ParquetFile, number: int, **named: object) -> pa.Table:
        read.append(number)
        return original(self, number, **named)

    monkeypatch.setattr(pa.parquet.ParquetFile, "read_row_group", counted)
    assert store.fetch_one("k042", EPOCH + 7 * SECOND) == 42 * OF_A_KEY + 7
    assert len(store.reader.opened) == 1
    assert len(read) == 2
    assert len(set(read)) == 1


def test_nothing_is_read_before_the_first_row_is_asked_for(store: WindowStore) -> None:
    """Nor after the last one that is: the rows come as they are taken."""
    rows = store.all()
    assert store.reader.opened == []
    for _ in range(ROWS // FILES - 100):
        next(rows)
    assert len(store.reader.opened) == 1
    for _ in range(200):
        next(rows)
    assert len(store.reader.opened) == 2


def test_file_that_was_read_stays_open_for_the_next_read(store: WindowStore) -> None:
    """Its footer is not read again."""
    for second in (1, 2, 3):
        assert store.fetch_one("k099", EPOCH + second * SECOND) is not None
    assert len(store.reader.opened) == 1


def test_everything_is_read_in_order_and_the_reverse_is_exact(store: WindowStore) -> None:
    """All rows once, over blocks of every size, row groups and files."""
    blocks = store.reader.blocks(Span())
    values = [value for block in blocks for value in block["value"].to_pylist()]
    assert values == list(range(ROWS))
    backwards = store.reader.blocks(Span(), reverse=True)
    assert [value for block in backwards for value in block["value"].to_pylist()] == values[::-1]


def test_recent_puts_over_a_sorted_base_are_merged(table: str, tmp_path: Path) -> None:
    """A file with keys from everywhere is opened beside the one whose turn it is, and no others."""
    path = str(tmp_path / "copy")
    _create(path, pa.schema(DeltaTable(table).schema().to_arrow()))
    for name in sorted(Path(table).glob("*.parquet")):
        write_deltalake(path, pa.parquet.read_table(name).combine_chunks(), mode="append")
    first = pa.parquet.read_table(min(Path(table).glob("*.parquet")))
    newer = pa.table(
        {
            "key": ["k000", "k042", "k099"],
            "start": pa.array([0, 7_000_000, 1_999_000_000], pa.timestamp("us", "UTC")),
            DELETED: [False, False, True],
            PUT: [2, 2, 2],
            PLACE: [0, 1, 2],
            OBSERVED: [0, 7_000_000, 1_999_000_000],
            "value": pa.array([-1, -2, None], pa.int64()),
        }
    )
    write_deltalake(path, newer.cast(first.schema), mode="append")

    store = WindowStore.open(path)
    assert [row.value for row in islice(store.all(), 2)] == [-1, 1]
    assert len(store.reader.opened) == 2
    assert [row.value for row in islice(store.backward_all(), 2)] == [ROWS - 2, ROWS - 3]
    assert len(store.reader.opened) == 3
    assert store.fetch_one("k042", EPOCH + 7 * SECOND) == -2
    (remark,) = store.reader.remarks()
    assert f"of {FILES + 1} files hold keys between those of others" in remark


def test_file_in_another_order_is_read_right_and_named(tmp_path: Path) -> None:
    """Its rows are sorted as they are read; the table says so, and where the log knows nothing of the key."""
    path = str(tmp_path / "table")
    for keys in ([5, 1, 3], [2, 6, 4]):
        write_deltalake(
            path, pa.table({"value": keys, "id": keys}), mode="append",
            configuration={"delta.dataSkippingNumIndexedCols": "1"},
        )  # fmt: skip
    reader = Reader([Source(path)], Shape(key=(("id",),), columns=("id",)))
    assert [row["id"] for row in reader.rows(Span())] == [1, 2, 3, 4, 5, 6]
    assert [row["id"] for row in reader.rows(Span(), reverse=True)] == [6, 5, 4, 3, 2, 1]
    assert [row["id"] for row in reader.rows(Span(Bound((2,)), Bound((4,))))] == [2, 3, 4]
    remarks = reader.remarks()
    assert any("log says nothing of id in 2 of 2 files" in remark for remark in remarks)
    assert any("rows of 2 files stand in another order" in remark for remark in remarks)


def test_key_with_a_dot_is_told_from_a_field_of_a_struct(tmp_path: Path) -> None:
    """Delta's log, Parquet's footers and its readers all write the two alike."""
    path = str(tmp_path / "table")
    for keys in ([5, 6, 7], [1, 2, 3]):
        structs = [{"b": -key, "c": key} for key in keys]
        write_deltalake(path, pa.table({"a.b": keys, "a": structs, "v": keys}), mode="append")
    reader = Reader([Source(path)], Shape(key=(("a.b",),), columns=("a.b", "a")))
    assert [row["a.b"] for row in reader.rows(Span())] == [1, 2, 3, 5, 6, 7]
    assert list(reader.rows(Span(Bound((6,)), Bound((6,))))) == [{"a.b": 6, "a": {"b": -6, "c": 6}}]
    by_value = Reader([Source(path)], Shape(key=(("v",),), columns=("v", "a.b")))
    assert list(by_value.rows(Span(Bound((2,)), Bound((2,))))) == [{"v": 2, "a.b": 2}]
    assert len(by_value.opened) == 1


def test_limit_of_a_value_looks_at_the_row_that_counts(tmp_path: Path) -> None:
    """A row that was superseded does not come to light because its successor is beyond the limit."""
    path = str(tmp_path / "table")
    write_deltalake(path, pa.table({"id": [1, 2, 3], "put": [1, 1, 1], "time": [5, 5, 9]}))
    write_deltalake(path, pa.table({"id": [1, 3], "put": [2, 2], "time": [9, 6]}), mode="append")
    shape = Shape(key=(("id",),), rank=(("put",),), columns=("id", "time"))
    reader, span = Reader([Source(path)], shape), Span(within={("time",): Between(5, 7)})
    expected = [{"id": 2, "time": 5}, {"id": 3, "time": 6}]
    assert list(reader.rows(span)) == expected
    assert list(reader.rows(span, reverse=True)) == expected[::-1]


def test_pinned_version_is_read_whatever_came_later(tmp_path: Path) -> None:
    """A reader without a version sees what was appended meanwhile, one with a version does not."""
    path = str(tmp_path / "table")
    write_deltalake(path, pa.table({"id": [1]}))
    shape = Shape(key=(("id",),), columns=("id",))
    pinned, newest = Reader([Source(path, 0)], shape), Reader([Source(path)], shape)
    write_deltalake(path, pa.table({"id": [2]}), mode="append")
    assert [row["id"] for row in pinned.rows(Span())] == [1]
    assert [row["id"] for row in newest.rows(Span())] == [1, 2]
    assert (pinned.estimate(), newest.estimate()) == (1, 2)


@pytest.mark.parametrize("key", [("id",), ("day", "id"), ("id", "day"), ("day",)])
def test_values_of_partitions_are_those_of_their_folders(key: tuple[str, ...], tmp_path: Path) -> None:
    """Wherever they stand in the key, and beside it; a folder of nulls has no place in an order of that column."""
    path = str(tmp_path / "table")
    days = [date(2024, 1, 2), date(2024, 1, 1), None, date(2024, 1, 1)]
    rows = pa.table({"id": [1, 2, 3, 4], "day": pa.array(days, pa.date32()), "what": list("abcd")})
    write_deltalake(path, rows, partition_by=["day"])
    reader = Reader([Source(path)], Shape(key=tuple((name,) for name in key), columns=("id", "day", "what")))
    places = sorted(
        {tuple(row[name] for name in key) for row in rows.to_pylist() if key == ("id",) or row["day"]}
    )
    found = list(reader.rows(Span()))
    assert [tuple(row[name] for name in key) for row in found] == places
    assert all(row in rows.to_pylist() for row in found)
    assert list(reader.rows(Span(), reverse=True)) == found[::-1]


def test_table_that_cannot_be_read_file_by_file_is_refused(tmp_path: Path) -> None:
    """What is no table, or no store, is said to be none."""
    with pytest.raises(StoreUnreadable, match="no Delta table"):
        WindowStore.open(str(tmp_path / "nothing"))
    other = str(tmp_path / "other")
    write_deltalake(other, pa.table({"id": [1]}))
    with pytest.raises(StoreUnreadable, match="is no store"):
        WindowStore.open(other)
    assert DeltaTable(other).version() == 0


def _create(path: str, schema: pa.Schema) -> None:
    DeltaTable.create(path, schema, configuration={PROPERTY: LAYOUT.to_json()}, raise_if_key_not_exists=False)
