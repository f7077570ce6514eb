"""Measuring a file: what is counted, and what happens to one that changed after it was read."""

import gzip
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from lakejoin.storage.errors import (
    SourceBroken,
    SourceChanged,
)
from lakejoin.storage.sources.files.source_files import Counted, FoundFile, MeasuredFile
from lakejoin.storage.sources.formats.csv import Csv
from lakejoin.storage.sources.formats.jsonl import Jsonl
from lakejoin.storage.sources.formats.parquet import Parquet


@pytest.mark.parametrize(
    ("content", "lines", "complete"),
    [
        (b"", 0, True),
        (b"\n", 1, True),
        (b"a", 1, False),
        (b"a\n", 1, True),
        (b"a\n\nb", 3, False),
        (b"a\r\nb\rc\n", 2, True),
        (b"x" * 3_000_000 + b"\ny\n", 2, True),
    ],
    ids=["empty", "blank", "no end", "one", "blank between", "carriage returns", "several chunks"],
)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_lines_are_counted_in_the_text(
    write: Callable[..., FoundFile], content: bytes, lines: int, *, complete: bool, packed: bool
) -> None:
    """A last line without its end counts, and says that none may follow; compression makes no difference."""
    found = write("x.jsonl.gz", gzip.compress(content)) if packed else write("x.jsonl", content)

    measured = Jsonl().measure(found)

    assert (measured.lines, measured.complete) == (lines, complete)


def test_file_of_zero_bytes_is_an_empty_gzip_file(write: Callable[..., FoundFile]) -> None:
    """A file that was only created yet has no lines, whatever its name."""
    assert Jsonl().measure(write("x.jsonl.gz", b"")).lines == 0


def test_gzip_members_are_read_one_after_the_other(write: Callable[..., FoundFile]) -> None:
    """A gzip file that was appended to is one text."""
    content = gzip.compress(b"a\nb") + gzip.compress(b"\nc\n")

    assert Jsonl().measure(write("x.jsonl.gz", content)).lines == 3


@pytest.mark.bad_input(41)
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.jsonl.gz", gzip.compress(b"a\n" * 999, mtime=0)[:-9], "ends in the middle"),
        ("x.jsonl.gz", b"plain text\n", "is no whole gzip file"),
        ("x.jsonl.gz", gzip.compress(b"a\n", mtime=0) + b"rest", "is no whole gzip file"),
        ("x.jsonl.gz", gzip.compress(b"a\n", mtime=0) + b"\0" * 9, "zeros behind the end"),
        ("x.jsonl.gz", gzip.compress(b"a\n", mtime=0)[:-8] + b"\1" * 8, "is no whole gzip file"),
        ("x.jsonl", gzip.compress(b"a\n", mtime=0), "give it a name that ends in .gz"),
        ("x.jsonl.xz", b"", "or use gzip"),
        ("x.parquet", b"", "is no whole Parquet file"),
        ("x.parquet", b"PAR1 torn", "is no whole Parquet file"),
    ],
    ids=[
        "torn",
        "plain as gz",
        "rest behind",
        "zeros behind",
        "checksum",
        "gz as plain",
        "xz",
        "0 bytes",
        "torn parquet",
    ],
)
def test_broken_file_is_named(
    write: Callable[..., FoundFile], name: str, content: bytes, message: str
) -> None:
    """A file whose bytes are not what its name says stops the run before anything is planned."""
    with pytest.raises(SourceBroken, match=f"{name}: .*{message}|{message}"):
        (Parquet() if name.endswith("parquet") else Jsonl()).measure(write(name, content))


def test_unchanged_file_is_not_read_again(tmp_path: Path, write: Callable[..., FoundFile]) -> None:
    """Size and time suffice: its bytes are not even there any more."""
    found = write("x.jsonl", b"a\nb\n")
    known = Jsonl().measure(found)
    (tmp_path / "x.jsonl").unlink()

    assert Jsonl().measure(found, known) == known


def test_touched_file_is_the_same(write: Callable[..., FoundFile]) -> None:
    """A new time with the old bytes is a copy, not a change."""
    known = Jsonl().measure(write("x.jsonl", b"a\nb"))

    again = Jsonl().measure(write("x.jsonl", b"a\nb", modified=2), known)

    assert (again.fingerprint, again.lines) == (known.fingerprint, known.lines)


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        (b"a\n", b"a\nb\n", 2),
        (b"a\n", b"a\nb", 2),
        (b"a", b"a\nb\n", 2),
        (b"x\r\na", b"x\r\na\r\nb\r\n", 3),
        (b"", b"a\n", 1),
        (b"a\n" * 600_000, b"a\n" * 600_001, 600_001),
    ],
    ids=[
        "whole lines",
        "unfinished line",
        "end of the last line",
        "both signs of an end",
        "from nothing",
        "several chunks",
    ],
)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_appended_file_is_continued(
    write: Callable[..., FoundFile], before: bytes, after: bytes, lines: int, *, packed: bool
) -> None:
    """Lines added behind the known ones are counted on; a gzip file grows by a member."""
    name = "x.jsonl.gz" if packed else "x.jsonl"
    old = gzip.compress(before) if packed else before
    new = old + gzip.compress(after[len(before) :]) if packed else after
    known = Jsonl().measure(write(name, old))

    assert Jsonl().measure(write(name, new, modified=2), known).lines == lines


@pytest.mark.bad_input(44)
@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (b"a\nb\n", b"a\n", "has 2 bytes now, had 4"),
        (b"a\nb\n", b"a\nc\n", "differs within its first 4 bytes"),
        (b"a\nb\n", b"x\nb\nc\n", "differs within its first 4 bytes"),
        (b"a\nb", b"a\nbc\n", "line 2 had no end when it was read, and has grown"),
        (b"a\nb", b"a\nb\rc\n", "line 2 had no end when it was read, and has grown"),
    ],
    ids=["shorter", "same length", "longer", "last line", "carriage return alone"],
)
def test_changed_file_is_an_error(
    write: Callable[..., FoundFile], before: bytes, after: bytes, message: str
) -> None:
    """What was read may not become something else; the message says what did and what to do."""
    known = Jsonl().measure(write("x.jsonl", before))

    with pytest.raises(SourceChanged, match=f"x.jsonl: changed after it was read: .*{message}.*Put the old"):
        Jsonl().measure(write("x.jsonl", after, modified=2), known)


def test_file_that_ends_early_is_an_error(write: Callable[..., FoundFile], tmp_path: Path) -> None:
    """A file cut between listing and reading is not taken for a short one."""
    found = write("x.jsonl", b"a\nb\n")
    (tmp_path / "x.jsonl").write_bytes(b"a\n")

    with pytest.raises(SourceChanged, match="ends after 2 bytes"):
        Jsonl().measure(found)


@pytest.fixture
def spark_counts(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], SparkSession]:
    """Return what stands in for a session that counts so many records in each CSV file, and finds stray quotes."""

    def session(records: int) -> SparkSession:
        counted = Counted(records, stray_quotes=True)
        monkeypatch.setattr("lakejoin.storage.sources.formats.csv.count_records", lambda *_: counted)
        return Mock(spec=SparkSession)

    return session


def test_csv_records_are_counted_by_the_reader(
    write: Callable[..., FoundFile], spark_counts: Callable[[int], SparkSession]
) -> None:
    """Line ends within quotes make no record, so Spark decides; an open quote allows none to follow."""
    spark = spark_counts(12)
    whole = Csv().measure(write("x.csv", b'a,op\n"1\n",c\n'), None, spark)
    torn = Csv().measure(write("y.csv", b'a,op\n"1\n'), None, spark)

    assert (whole.lines, whole.complete, whole.stray_quotes) == (12, True, True)
    assert Csv().measure(write("x.csv", b'a,op\n"1\n",c\n', modified=2), whole, spark).stray_quotes
    assert (torn.lines, torn.complete) == (12, False)
    assert Csv().measure(write("z.csv"), None, spark).lines == 0
    with pytest.raises(ValueError, match="is counted by Spark"):
        Csv().measure(write("x.csv", b"a,op\n"))


@pytest.mark.parametrize(
    ("content", "returns"),
    [
        (b"a,op\n1,c\n", False),
        (b'a,op\n"1\r\n2\r\n",c\n', False),
        (b'a,op\n1,c\n2,c\n"1\r\n",c\r\n', True),
        (b'a,op\n"1\r\n",c\n5",c\n2,c\r\n', True),
        (b"a,op\n" + b"1" * ((1 << 20) - 6) + b"\r\n", True),
        (b"a,op\n" + b"1" * ((1 << 20) - 8) + b',"\r\n"\n', False),
    ],
    ids=["none", "within quotes", "outside", "behind a stray quote", "between chunks", "the same in quotes"],
)
def test_csv_line_that_ends_with_a_carriage_return_is_noticed(
    write: Callable[..., FoundFile],
    spark_counts: Callable[[int], SparkSession],
    content: bytes,
    *,
    returns: bool,
) -> None:
    """Wherever in the file it is; within quotes it is data."""
    found = Csv().measure(write("x.csv", content), None, spark_counts(1))

    assert found.returns == returns


def test_grown_csv_file_is_checked_without_a_session(
    write: Callable[..., FoundFile], spark_counts: Callable[[int], SparkSession]
) -> None:
    """To finish a planned batch it is enough that the planned part is the same."""
    known = Csv().measure(write("x.csv", b"a,op\n1,c\n"), None, spark_counts(1))
    grown = write("x.csv", b"a,op\n1,c\n2,c\n", modified=2)

    assert Csv().measure(grown, known).lines == 1
    assert Csv().measure(grown, known, spark_counts(2)).lines == 2


def test_parquet_rows_are_counted_by_the_footer(write: Callable[..., FoundFile], tmp_path: Path) -> None:
    """Parquet files are whole or new, never continued."""
    pq.write_table(pa.table({"a": [1, 2, 3]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"a": list(range(1000))}), tmp_path / "b.parquet")
    known = Parquet().measure(write("x.parquet", (tmp_path / "a.parquet").read_bytes()))

    assert (known.lines, known.complete) == (3, True)
    touched = write("x.parquet", (tmp_path / "a.parquet").read_bytes(), modified=2)
    assert Parquet().measure(touched, known).lines == 3
    with pytest.raises(SourceChanged, match="has other content now"):
        Parquet().measure(write("x.parquet", (tmp_path / "b.parquet").read_bytes()), known)


def test_measured_file_keeps_what_was_found(write: Callable[..., FoundFile]) -> None:
    """Path, name, size and time are those of the listing; the fingerprint is 128 bits."""
    found = write("x.jsonl", b"a\n", modified=7)

    measured = Jsonl().measure(found)

    assert isinstance(measured, MeasuredFile)
    assert (measured.path, measured.size, measured.modified) == (found.path, 2, 7 * 10**9)
    assert len(measured.fingerprint) == 32
