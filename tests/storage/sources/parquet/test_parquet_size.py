"""Parquet files that say little of what they become: bounded before a batch is planned, with little in memory."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakejoin.storage.errors import SourceBroken, SourceTooLarge
from lakejoin.storage.sources.files.limits import FileLimits
from lakejoin.storage.sources.files.source_files import FoundFile, stat_file
from lakejoin.storage.sources.formats.parquet import Parquet
from lakejoin.storage.sources.parquet.parquet_pages import Page, Window, read_pages
from lakejoin.storage.sources.parquet.parquet_size import check_parquet

pytestmark = pytest.mark.bad_input(46)

TEXT = "x" * 1_000_000
WIDE = {"dictionary_pagesize_limit": 1 << 30, "write_statistics": False}
"""One dictionary for all values, and none of them in the footer."""


def repeated(value: str | bytes, count: int, dtype: pa.DataType | None = None) -> pa.Array:
    """One value so many times, which is held once."""
    places = pa.array([0] * count, pa.int32())
    return pa.DictionaryArray.from_arrays(places, pa.array([value], dtype))


BOMBS: dict[str, Callable[[], tuple[pa.Array, dict[str, Any]]]] = {
    "text": lambda: (repeated(TEXT, 300), WIDE),
    "bytes": lambda: (repeated(TEXT.encode(), 300), WIDE),
    "large text": lambda: (repeated(TEXT, 300, pa.large_string()), WIDE),
    "new pages": lambda: (repeated(TEXT, 300), {**WIDE, "data_page_version": "2.0"}),
    "list": lambda: (pa.ListArray.from_arrays([0, 300], repeated(TEXT, 300)), WIDE),
    "struct": lambda: (pa.StructArray.from_arrays([repeated(TEXT, 300)], ["text"]), WIDE),
    "map": lambda: (
        pa.MapArray.from_arrays([0, 300], pa.array([f"k{i}" for i in range(300)]), repeated(TEXT, 300)),
        WIDE,
    ),
    "prefixes": lambda: (
        pa.array([TEXT] * 300),
        {**WIDE, "use_dictionary": False, "column_encoding": {"v": "DELTA_BYTE_ARRAY"}},
    ),
    "prefixes in a list": lambda: (
        pa.array([[TEXT] * 300]),
        {**WIDE, "use_dictionary": False, "column_encoding": {"v.list.element": "DELTA_BYTE_ARRAY"}},
    ),
    "numbers in a list": lambda: (pa.array([[7] * 20_000_000], pa.large_list(pa.int64())), WIDE),
    "fixed bytes": lambda: (pa.array([TEXT.encode()] * 300, pa.binary(1_000_000)), {**WIDE, "use_dictionary": False}),
}  # fmt: skip


def write(folder: Path, values: pa.Array, compression: str = "zstd", **options: Any) -> FoundFile:
    """Write a file with one column."""
    pq.write_table(pa.table({"v": values}), folder / "x.parquet", compression=compression, **options)
    return stat_file(str(folder / "x.parquet"), "x.parquet", None)


def measure(found: FoundFile, **limits: int) -> int:
    """Return how many rows a file has that is within the limits."""
    return Parquet().measure(found, limits=FileLimits(**limits)).lines


def peak(found: FoundFile, **limits: int) -> int:
    """Return the most bytes that are held at once while a file is refused."""
    usual = pa.default_memory_pool()
    counted = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(counted)
    try:
        with pytest.raises(SourceTooLarge):
            measure(found, **limits)
        return int(counted.max_memory())
    finally:
        pa.set_memory_pool(usual)


@pytest.mark.parametrize("kind", BOMBS)
def test_values_count_not_pages(tmp_path: Path, kind: str) -> None:
    """The message has the file, what was found, the limit and its key; who means it raises the key."""
    values, options = BOMBS[kind]()
    found = write(tmp_path, values, **options)
    assert found.size < 100_000

    with pytest.raises(
        SourceTooLarge, match=r"x.parquet: its first [0-9,]+ bytes unpack to over [123][0-9]{2},[0-9,]{7,};"
    ) as refused:
        measure(found, memory=10**9)
    assert "expected at most 1,000 for one (source.limits.ratio)" in str(refused.value)
    with pytest.raises(
        SourceTooLarge, match=r"has over 120,000,000 bytes, unpacked; .*\(source.limits.file\)"
    ):
        measure(found, memory=10**9, ratio=10**9, file=120_000_000)
    assert measure(found, memory=10**9, ratio=10**9) == len(values)


@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd", "brotli", "lz4"])
def test_compression_makes_no_difference(tmp_path: Path, compression: str) -> None:
    """What is compressed within pages comes on top of what they stand for."""
    found = write(tmp_path, repeated(TEXT, 2000), compression, **WIDE)

    with pytest.raises(SourceTooLarge, match="unpack to over 2,000,0"):
        measure(found)


def test_reported_file_is_refused_with_little_memory(tmp_path: Path) -> None:
    """Reported: Parquet of 3,868 bytes, 300 rows, 18 GB of text by a dictionary; it was planned, then heap space."""
    found = write(tmp_path, repeated("x" * 60_000_000, 300), **WIDE)

    with pytest.raises(SourceTooLarge, match="unpack to over 18,000,0"):
        measure(found)
    assert peak(found) < 300_000_000


def test_longest_entry_may_be_rare(tmp_path: Path) -> None:
    """Where each value could be the longest one, their lengths are added up; the sum of them is exact."""
    texts = pa.DictionaryArray.from_arrays(
        pa.array([0, None, *[1] * 100_000], pa.int32()), pa.array([TEXT, "ab"])
    )
    exact = len(TEXT) + 2 * 100_000

    found = write(tmp_path, texts, **WIDE)

    assert measure(found, ratio=1, file=max(exact, 1_000_000 + 100_000)) == 100_002
    with pytest.raises(SourceTooLarge, match=f"has over {exact - 1:,} bytes"):
        measure(found, file=exact - 1)


def test_values_with_common_beginnings_are_added_up(tmp_path: Path) -> None:
    """As sorted keys have them: their lengths are read, and a file that has no more is taken."""
    texts = [f"customer/{number:09}" for number in range(50_000)]
    found = write(tmp_path, pa.array(texts), use_dictionary=False, column_encoding={"v": "DELTA_BYTE_ARRAY"})
    exact = sum(map(len, texts))

    assert measure(found, file=exact) == len(texts)
    with pytest.raises(SourceTooLarge, match=f"has over {exact - 1:,} bytes"):
        measure(found, file=exact - 1)


@pytest.mark.parametrize("values", [[], [None] * 1000, [[]] * 1000, [{}] * 1000])
def test_columns_without_values_are_nothing(tmp_path: Path, values: list[Any]) -> None:
    """A dictionary that no value of the first row comes from is not taken for an empty one."""
    dtype = {dict: pa.map_(pa.string(), pa.string()), list: pa.list_(pa.string())}
    kind = dtype.get(type(values[0]) if values else str, pa.string())
    several = [*values, *([["ab"] * 9] if values == [[]] * 1000 else [])]

    assert measure(write(tmp_path, pa.array(several, kind))) == len(several)


def test_longest_entry_is_not_the_first_rows(tmp_path: Path) -> None:
    """An empty list is read without its dictionary; what stands behind it counts all the same."""
    lists = pa.ListArray.from_arrays([0, 0, 300], repeated(TEXT, 300))

    with pytest.raises(SourceTooLarge, match="unpack to over 300,0"):
        measure(write(tmp_path, lists, **WIDE))


def test_footer_that_says_less_than_the_pages_is_no_way_in(tmp_path: Path) -> None:
    """Readers make room by the headers of pages, and so they count."""
    found = write(tmp_path, pa.array(["x" * 600_000_000]), use_dictionary=False, write_statistics=False)
    content = (tmp_path / "x.parquet").read_bytes()
    said = pq.read_metadata(found.path).row_group(0).column(0).total_uncompressed_size
    place = len(content) - pq.read_metadata(found.path).serialized_size - 8
    # the same length of bytes, for a number of Thrift may have zeros in front
    lie = content[:place] + content[place:].replace(number(said), number(8, len(number(said))))
    (tmp_path / "x.parquet").write_bytes(lie)
    assert pq.read_metadata(found.path).row_group(0).column(0).total_uncompressed_size == 8

    with pytest.raises(SourceTooLarge, match="a page of column v in row group 0, unpacked, has 600,0"):
        measure(stat_file(found.path, found.name, None), ratio=10**9)


def number(value: int, length: int = 0) -> bytes:
    """A positive integer as Thrift's compact protocol writes it, in so many bytes."""
    value, found = value << 1, []
    while value > 127 or len(found) + 1 < length:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def test_page_that_no_memory_holds_is_refused(tmp_path: Path) -> None:
    """A value is in one page, and a page is read whole; the message has column, size, limit and key."""
    found = write(tmp_path, pa.array([TEXT * 3]), use_dictionary=False, write_statistics=False)

    with pytest.raises(
        SourceTooLarge, match=r"has 3,000,0[0-9]+ bytes, all in memory at once; .*2,000,000 \("
    ) as no:
        measure(found, memory=2_000_000)
    assert "(source.limits.memory)" in str(no.value)
    assert measure(found, memory=4_000_000) == 1


def test_row_of_very_many_values_is_refused(tmp_path: Path) -> None:
    """No page of it is large."""
    numbers = [number % 1000 for number in range(1_000_000)]
    found = write(tmp_path, pa.array([numbers], pa.list_(pa.int64())))

    with pytest.raises(
        SourceTooLarge, match=r"a row of row group 0, on average, has 8,000,000 bytes, all in"
    ):
        measure(found, memory=7_000_000)
    assert measure(found, memory=8_000_000) == 1


def test_very_many_columns_are_refused_by_the_length_of_the_footer(tmp_path: Path) -> None:
    """The footer itself is not read: it becomes many times as large."""
    columns = {f"c{number}": pa.array([1], pa.int8()) for number in range(10_000)}
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    found = stat_file(str(tmp_path / "x.parquet"), "x.parquet", None)

    with pytest.raises(
        SourceTooLarge, match=r"its footer, taken apart, has [0-9,]+ bytes, .*\(source.limits.memory"
    ):
        measure(found, memory=3_000_000)
    assert peak(found, memory=3_000_000) < 1_000_000
    assert measure(found) == 1


def test_very_deep_schema_is_refused(tmp_path: Path) -> None:
    """Whatever reads it goes down by one call a level."""
    deep = pa.array([1])
    for _ in range(3000):
        deep = pa.StructArray.from_arrays([deep], ["s"])

    with pytest.raises(SourceTooLarge, match=r"its schema has more levels .* limit is 100"):
        measure(write(tmp_path, deep))


@pytest.mark.parametrize("header", [b"\x1c" * 40, b"\xff" * 40, b"\x19\xff" + b"\xff" * 38, b"\x00" * 40])
def test_page_without_a_header_is_told(tmp_path: Path, header: bytes) -> None:
    """Levels without end, numbers without end, a list without end, a struct without fields."""
    found = write(tmp_path, pa.array(["a"] * 100), "none", use_dictionary=False)
    content = bytearray((tmp_path / "x.parquet").read_bytes())
    content[4:44] = header
    (tmp_path / "x.parquet").write_bytes(content)

    with pytest.raises(SourceBroken, match="is no whole Parquet file"):
        check_parquet(found.path, found.size, FileLimits())


def test_pages_are_read_as_they_were_written(tmp_path: Path) -> None:
    """Also where a header is longer than what is read of it first."""
    values = pa.array(["a" * 100_000, "b" * 100_000, None])
    write(tmp_path, values, "none", use_dictionary=False, write_statistics=True)
    stored = pq.read_metadata(tmp_path / "x.parquet").row_group(0).column(0)
    start, end = stored.data_page_offset, stored.data_page_offset + stored.total_compressed_size

    with pa.OSFile(str(tmp_path / "x.parquet")) as file:
        (page,) = read_pages(Window(file), start, end)

    assert page == Page(page.unpacked, 3, "plain")
    assert 200_008 < page.unpacked < 200_100
