"""Files beyond the limits of their source: refused before a batch is planned, and never read into memory."""

import gzip
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakejoin.orchestration.config import load_text
from lakejoin.orchestration.planning.pending_input import pending_groups
from lakejoin.storage.errors import SourceBroken, SourceTooLarge
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.sources.files import limits
from lakejoin.storage.sources.files.limits import FileLimits
from lakejoin.storage.sources.files.source_files import FoundFile, MeasuredFile, stat_file
from lakejoin.storage.sources.formats.csv import Csv
from lakejoin.storage.sources.formats.jsonl import Jsonl
from lakejoin.storage.sources.formats.parquet import Parquet
from lakejoin.storage.sources.text.csv_text import read_header
from lakejoin.transforms.parsing.csv_dialect import RFC_4180
from lakejoin.transforms.parsing.row_ops import DEFAULT_OP

Write = Callable[[str, bytes], FoundFile]


@contextmanager
def peak_memory() -> Iterator[list[int]]:
    """Give the most bytes that Python held at once within the block, when it has ended."""
    peak: list[int] = []
    tracemalloc.start()
    try:
        yield peak
    finally:
        peak.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()


def measure(found: FoundFile, limits: FileLimits) -> MeasuredFile:
    """Measure a new file of its own format."""
    form = Parquet() if found.name.endswith("parquet") else Jsonl()
    return form.measure(found, limits=limits)


@pytest.mark.bad_input(46)
def test_bomb_is_refused_without_being_unpacked(write: Write) -> None:
    """Neither what is unpacked nor all that is packed is ever in memory; the message tells both sizes."""
    bomb = write("bomb.jsonl.gz", gzip.compress(bytes(150_000_000)))

    with (
        peak_memory() as peak,
        pytest.raises(
            SourceTooLarge, match=r"bomb.jsonl.gz: its first [0-9,]+ bytes unpack to over 1[0-9,]+;"
        ),
    ):
        measure(bomb, FileLimits(ratio=900))

    assert peak[0] < 20_000_000


@pytest.mark.bad_input(46)
def test_small_file_may_be_packed_as_it_likes(write: Write) -> None:
    """Ten thousand equal lines are no attack."""
    content = b'{"op":"c","id":1}\n' * 10_000

    assert measure(write("x.jsonl.gz", gzip.compress(content)), FileLimits(ratio=2)).lines == 10_000


@pytest.mark.bad_input(46)
@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz"])
def test_file_is_as_large_as_what_is_in_it(write: Write, name: str) -> None:
    """The limit itself is allowed, packed or not."""
    content = b'{"op":"c","id":1}\n' * 1000
    found = write(name, gzip.compress(content) if name.endswith("gz") else content)

    assert measure(found, FileLimits(file=len(content))).lines == 1000
    with pytest.raises(SourceTooLarge, match=r"has over 17,999 bytes, unpacked; .*\(source.limits.file\)"):
        measure(found, FileLimits(file=len(content) - 1))


@pytest.mark.bad_input(46)
def test_parquet_bomb_is_refused_by_its_footer(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A value that is repeated a million times takes no room in the file, and all of it in memory."""
    monkeypatch.setattr(limits, "_HONEST", 1000)
    pq.write_table(pa.table({"id": pa.repeat(7, 1_000_000)}), tmp_path / "x.parquet")
    found = stat_file(str(tmp_path / "x.parquet"), "x.parquet", None)

    with pytest.raises(SourceTooLarge, match="unpack to over 8,000,000; expected at most 100 for one"):
        measure(found, FileLimits(ratio=100))
    with pytest.raises(SourceTooLarge, match="has over 7,999,999 bytes"):
        measure(found, FileLimits(file=7_999_999))
    assert measure(found, FileLimits(ratio=10_000)).lines == 1_000_000


@pytest.mark.bad_input(12)
@pytest.mark.parametrize("packed", [False, True])
def test_line_that_no_memory_holds_is_refused(write: Write, *, packed: bool) -> None:
    """It spans many chunks of the reading; the message names its number, the limit and what raises it."""
    content = b"a\n" + b"x" * 2_999_999 + b"\n" + b"y" * 4_200_000 + b"\n"
    found = write("x.jsonl.gz", gzip.compress(content)) if packed else write("x.jsonl", content)

    with pytest.raises(
        SourceTooLarge, match=r"line 3 has at least 3,[0-9,]+ bytes, .* at most 3,000,000 "
    ) as refused:
        measure(found, FileLimits(memory=3_000_000))
    assert "(source.limits.memory)" in str(refused.value)
    assert measure(found, FileLimits(memory=5_000_000)).lines == 3


@pytest.mark.bad_input(12)
def test_csv_without_a_header_line_is_not_read_into_memory(write: Write) -> None:
    """Where a header should be, a file without line ends would be read whole."""
    found = write("x.csv", b"a" * 20_000_000)

    with (
        peak_memory() as peak,
        pytest.raises(SourceBroken, match="found a line of over 1,000,000 characters"),
    ):
        read_header(found.path, RFC_4180)

    assert peak[0] < 10_000_000


@pytest.mark.bad_input(12)
@pytest.mark.parametrize("packed", [False, True])
def test_record_of_many_lines_that_no_memory_holds_is_refused(write: Write, *, packed: bool) -> None:
    """A quote that is not closed takes in what follows, line by line; the message has the line where it begins."""
    content = b'id,name\n1,"a\nb"\n2,"' + b"2,b\n" * 1_000_000
    found = write("x.csv.gz", gzip.compress(content)) if packed else write("x.csv", content)

    with pytest.raises(
        SourceTooLarge,
        match=r"the record from line 4 on, with 2 bytes for each character, has at least 3,0[0-9,]+ bytes",
    ) as refused:
        Csv().scan(found, None, FileLimits(memory=3_000_000))
    assert "expected at most 3,000,000 (source.limits.memory)" in str(refused.value)
    assert not Csv().scan(found, None, FileLimits(memory=10_000_000)).complete


@pytest.mark.bad_input(12)
def test_quotes_within_fields_make_no_record_long(write: Write) -> None:
    """By their number alone the rest of the file would be one record; its lines are looked at once more."""
    content = b'id,name\n1,5" disk\n' + b'2,"b"\n3,c\n' * 400_000

    content_of = Csv().scan(write("x.csv", content), None, FileLimits(memory=3_000_000))

    assert (content_of.lines, content_of.long_record) == (800_002, True)


@pytest.mark.bad_input(46)
def test_other_compression_is_told_by_its_first_bytes(write: Write) -> None:
    """What is unpacked by nobody would be quarantined line by line."""
    with pytest.raises(SourceBroken, match=r"is compressed with zstd; give it a name that ends in \.zst"):
        measure(write("x.jsonl", pa.compress(b"{}" * 1000, "zstd", asbytes=True)), FileLimits())


@pytest.mark.bad_input(12)
def test_columns_of_a_deep_line_are_not_looked_for(write: Write) -> None:
    """`status` looks into the newest file, whatever is in it."""
    deep = b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}\n"

    assert Jsonl().columns_of(write("x.jsonl", deep + b'{"id":1}\n'), DEFAULT_OP) == ["id"]


@pytest.mark.bad_input(46)
def test_limit_of_a_source_stops_a_run_before_it_plans(tmp_path: Path) -> None:
    """The table is named, and the lake is not even made."""
    (tmp_path / "orders.jsonl").write_text('{"op":"c","id":1}\n' * 10)
    text = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {format: jsonl, path: orders.jsonl, limits: {file: 100 bytes}}
    columns: {id: bigint}
    key: [id]
"""
    pipeline = load_text(text, tmp_path / "lakejoin.yaml")

    with pytest.raises(SourceTooLarge, match=r"table orders: .*orders.jsonl: has over 100 bytes, unpacked"):
        pending_groups(pipeline, Journal(Lake(pipeline.lake)), now=datetime.now(UTC), spark=None)
    assert not (tmp_path / "lake").exists()
