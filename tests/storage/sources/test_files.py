"""Which files a source has, what is in them, and what happens to one that changes."""

import gzip
import os
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage.errors import (
    SourceBroken,
    SourceChanged,
    SourceError,
    SourceNotFound,
    SourceRefused,
    SourceUnreadable,
)
from storage.filesystem import reading
from storage.sources.files import Counted, FoundFile, MeasuredFile, find_files, measure_file, stat_file

NOW = datetime(2030, 1, 1, tzinfo=UTC)
ANY_AGE = timedelta(0)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., FoundFile]:
    """Write a file below the test's directory and return it as it would be listed."""

    def write(name: str, content: bytes = b"", modified: int = 1) -> FoundFile:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, ns=(modified * 10**9, modified * 10**9))
        return stat_file(str(path), name, None)

    return write


def names(path: str) -> list[str]:
    """Names of the files that a path finds."""
    return [file.name for file in find_files(path, settle=ANY_AGE, now=NOW)]


def test_dated_files_are_sorted_by_day_and_not_by_name(
    tmp_path: Path, write: Callable[..., FoundFile]
) -> None:
    """The day comes first, whatever stands before it in the name."""
    for name in ("b-2013-01-02.jsonl", "a-2013-01-03.jsonl", "c-2013-01-01.jsonl"):
        write(name, b"{}\n")

    found = find_files(f"{tmp_path}/*-{{date}}.jsonl", settle=ANY_AGE, now=NOW)

    assert [(file.name[0], file.date) for file in found] == [
        ("c", date(2013, 1, 1)),
        ("b", date(2013, 1, 2)),
        ("a", date(2013, 1, 3)),
    ]


def test_directories_before_a_day_are_not_listed(tmp_path: Path, write: Callable[..., FoundFile]) -> None:
    """What is wrong in them is not even seen."""
    for name in ("2013-01-01/a.csv", "2013-01-02/a.csv", "2013-01-03/a.csv"):
        write(name, b"x\n1\n")
    (tmp_path / "2013-01-01" / "link.csv").symlink_to(tmp_path / "2013-01-02" / "a.csv")
    since = date(2013, 1, 2)

    found = find_files(f"{tmp_path}/{{date}}/*.csv", settle=ANY_AGE, now=NOW, since=since)

    assert [file.name for file in found] == ["2013-01-02/a.csv", "2013-01-03/a.csv"]


@pytest.mark.bad_input(43)
@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("{date}.jsonl", ["2013-01-01.jsonl"]),
        ("a/{date}/{date}-?.csv", ["2013-01-01/2013-01-01-1.csv"]),
        ("a/**/*.csv", ["2013-01-01/2013-01-01-1.csv", "2013-01-01/2013-01-02-1.csv", "x.csv"]),
        ("a/[xy].csv", ["x.csv"]),
        ("a/[!x].csv", []),
        ("a/x.csv", ["x.csv"]),
        ("a", ["2013-01-01/2013-01-01-1.csv", "2013-01-01/2013-01-02-1.csv", "x.csv"]),
        ("?/*.csv", ["a/x.csv"]),
        ("*.parquet", []),
        ("[[]1][*][{]date}/*.csv", ["x.csv"]),
        ("[[]1]*/*.csv", ["[1]*{date}/x.csv"]),
    ],
)
def test_path_finds_what_it_names(
    tmp_path: Path, write: Callable[..., FoundFile], pattern: str, expected: list[str]
) -> None:
    """Names are relative to the part of the path without wildcards; `{date}` is the same day everywhere."""
    for name in (
        "2013-01-01.jsonl",
        "a/2013-01-01/2013-01-01-1.csv",
        "a/2013-01-01/2013-01-02-1.csv",
        "a/x.csv",
        "[1]*{date}/x.csv",
    ):
        write(name)
    for unfinished in ("_2013-01-01.jsonl", ".x.csv", "a/y.csv.tmp", "a/_tmp/z.csv", "a/x.csv._COPYING_"):
        write(unfinished)

    assert names(f"{tmp_path}/{pattern}") == expected


def test_uri_finds_the_files_of_its_path(tmp_path: Path, write: Callable[..., FoundFile]) -> None:
    """A URI is listed through the same code, and its files keep it."""
    write("a/2013-01-01.jsonl")

    found = find_files(f"file://{tmp_path}/a/{{date}}.jsonl", settle=ANY_AGE, now=NOW)

    assert [(file.path, file.name) for file in found] == [
        (f"file://{tmp_path}/a/2013-01-01.jsonl", "2013-01-01.jsonl")
    ]


@pytest.mark.bad_input(30)
def test_name_that_is_no_text_is_told(tmp_path: Path) -> None:
    """Old archives have names in Latin-1; whether it matches the pattern makes no difference."""
    Path(os.fsdecode(bytes(tmp_path) + b"/M\xe4rz.txt")).touch()

    with pytest.raises(SourceRefused, match=rf"{tmp_path}: holds a name that is not UTF-8 \(b'.*M.xe4rz"):
        find_files(f"{tmp_path}/*.csv", settle=ANY_AGE, now=NOW)


@pytest.mark.bad_input(43)
def test_young_files_wait_until_they_settled(tmp_path: Path, write: Callable[..., FoundFile]) -> None:
    """A file that changed less than `settle` ago may still be written."""
    write("old.csv", modified=int(NOW.timestamp()) - 30)
    write("young.csv", modified=int(NOW.timestamp()) - 29)

    found = find_files(f"{tmp_path}/*.csv", settle=timedelta(seconds=30), now=NOW)

    assert [file.name for file in found] == ["old.csv"]


@pytest.mark.bad_input(30)
@pytest.mark.parametrize(
    ("pattern", "error", "message"),
    [
        ("nowhere/{date}.csv", SourceNotFound, "nowhere: not found; check the path"),
        ("no.csv", SourceNotFound, "no.csv: not found"),
        ("a.csv/{date}.csv", SourceNotFound, "a.csv: is no directory"),
        ("_a.csv", SourceRefused, "never read; rename it"),
        ("{date}.jsonl", SourceRefused, "2013-02-30 is no day"),
        ("links/*.csv", SourceRefused, "b.csv: is a symlink"),
        ("links/*/*.csv", SourceRefused, "c: is a symlink"),
        ("*.json", SourceRefused, "colon in its name"),
        ("", SourceRefused, "is a symlink"),
    ],
)
def test_path_is_refused_with_a_reason(
    tmp_path: Path, write: Callable[..., FoundFile], pattern: str, error: type[Exception], message: str
) -> None:
    """What cannot be listed, or must not be read, names the path and the way out."""
    for name in ("a.csv", "_a.csv", "2013-02-30.jsonl", "10:00.json", "dir/x.csv", "links/a.csv"):
        write(name)
    (tmp_path / "links/b.csv").symlink_to(tmp_path / "a.csv")
    (tmp_path / "links/c").symlink_to(tmp_path / "dir")

    with pytest.raises(error, match=message):
        names(f"{tmp_path}/{pattern}")


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

    measured = measure_file(found, "jsonl")

    assert (measured.lines, measured.complete) == (lines, complete)


def test_file_of_zero_bytes_is_an_empty_gzip_file(write: Callable[..., FoundFile]) -> None:
    """A file that was only created yet has no lines, whatever its name."""
    assert measure_file(write("x.jsonl.gz", b""), "jsonl").lines == 0


def test_gzip_members_are_read_one_after_the_other(write: Callable[..., FoundFile]) -> None:
    """A gzip file that was appended to is one text."""
    content = gzip.compress(b"a\nb") + gzip.compress(b"\nc\n")

    assert measure_file(write("x.jsonl.gz", content), "jsonl").lines == 3


@pytest.mark.bad_input(41)
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.jsonl.gz", gzip.compress(b"a\n" * 999)[:-9], "ends in the middle"),
        ("x.jsonl.gz", b"plain text\n", "is no whole gzip file"),
        ("x.jsonl.gz", gzip.compress(b"a\n") + b"rest", "is no whole gzip file"),
        ("x.jsonl.gz", gzip.compress(b"a\n") + b"\0" * 9, "zeros behind the end"),
        ("x.jsonl.gz", gzip.compress(b"a\n")[:-8] + b"\1" * 8, "is no whole gzip file"),
        ("x.jsonl", gzip.compress(b"a\n"), "give it a name that ends in .gz"),
        ("x.jsonl.GZ", gzip.compress(b"a\n"), "gzip named .gz"),
        ("x.jsonl.zst", b"", "or use gzip"),
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
        "capitals",
        "zstd",
        "0 bytes",
        "torn parquet",
    ],
)
def test_broken_file_is_named(
    write: Callable[..., FoundFile], name: str, content: bytes, message: str
) -> None:
    """A file whose bytes are not what its name says stops the run before anything is planned."""
    with pytest.raises(SourceBroken, match=f"{name}: .*{message}|{message}"):
        measure_file(write(name, content), "parquet" if name.endswith("parquet") else "jsonl")


def test_unchanged_file_is_not_read_again(tmp_path: Path, write: Callable[..., FoundFile]) -> None:
    """Size and time suffice: its bytes are not even there any more."""
    found = write("x.jsonl", b"a\nb\n")
    known = measure_file(found, "jsonl")
    (tmp_path / "x.jsonl").unlink()

    assert measure_file(found, "jsonl", known) == known


def test_touched_file_is_the_same(write: Callable[..., FoundFile]) -> None:
    """A new time with the old bytes is a copy, not a change."""
    known = measure_file(write("x.jsonl", b"a\nb"), "jsonl")

    again = measure_file(write("x.jsonl", b"a\nb", modified=2), "jsonl", known)

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
    known = measure_file(write(name, old), "jsonl")

    assert measure_file(write(name, new, modified=2), "jsonl", known).lines == lines


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
    known = measure_file(write("x.jsonl", before), "jsonl")

    with pytest.raises(SourceChanged, match=f"x.jsonl: changed after it was read: .*{message}.*Put the old"):
        measure_file(write("x.jsonl", after, modified=2), "jsonl", known)


def test_file_that_ends_early_is_an_error(write: Callable[..., FoundFile], tmp_path: Path) -> None:
    """A file cut between listing and reading is not taken for a short one."""
    found = write("x.jsonl", b"a\nb\n")
    (tmp_path / "x.jsonl").write_bytes(b"a\n")

    with pytest.raises(SourceChanged, match="ends after 2 bytes"):
        measure_file(found, "jsonl")


def test_csv_records_are_counted_by_the_reader(write: Callable[..., FoundFile]) -> None:
    """Line ends within quotes make no record, so the counter decides; an open quote allows none to follow."""
    counted = lambda found: Counted(found.size, stray_quotes=True)  # noqa: E731 - a stand-in for Spark
    whole = measure_file(write("x.csv", b'a,op\n"1\n",c\n'), "csv", None, counted)
    torn = measure_file(write("y.csv", b'a,op\n"1\n'), "csv", None, counted)

    assert (whole.lines, whole.complete, whole.stray_quotes) == (12, True, True)
    assert measure_file(write("x.csv", b'a,op\n"1\n",c\n', modified=2), "csv", whole, counted).stray_quotes
    assert (torn.lines, torn.complete) == (8, False)
    assert measure_file(write("z.csv"), "csv", None, counted).lines == 0
    with pytest.raises(ValueError, match="needs a counter"):
        measure_file(write("x.csv", b"a,op\n"), "csv")


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
    write: Callable[..., FoundFile], content: bytes, *, returns: bool
) -> None:
    """Wherever in the file it is; within quotes it is data."""
    found = measure_file(write("x.csv", content), "csv", None, lambda _: Counted(1))

    assert found.returns == returns


def test_grown_csv_file_is_checked_without_a_counter(write: Callable[..., FoundFile]) -> None:
    """To finish a planned batch it is enough that the planned part is the same."""
    known = measure_file(write("x.csv", b"a,op\n1,c\n"), "csv", None, lambda _: Counted(1))
    grown = write("x.csv", b"a,op\n1,c\n2,c\n", modified=2)

    assert measure_file(grown, "csv", known).lines == 1
    assert measure_file(grown, "csv", known, lambda _: Counted(2)).lines == 2


def test_parquet_rows_are_counted_by_the_footer(write: Callable[..., FoundFile], tmp_path: Path) -> None:
    """Parquet files are whole or new, never continued."""
    pq.write_table(pa.table({"a": [1, 2, 3]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"a": list(range(1000))}), tmp_path / "b.parquet")
    known = measure_file(write("x.parquet", (tmp_path / "a.parquet").read_bytes()), "parquet")

    assert (known.lines, known.complete) == (3, True)
    touched = write("x.parquet", (tmp_path / "a.parquet").read_bytes(), modified=2)
    assert measure_file(touched, "parquet", known).lines == 3
    with pytest.raises(SourceChanged, match="has other content now"):
        measure_file(write("x.parquet", (tmp_path / "b.parquet").read_bytes()), "parquet", known)


@pytest.mark.bad_input(32)
def test_secret_in_a_uri_is_not_repeated() -> None:
    """Neither by us nor in what Arrow says; a secret may hold a slash."""
    with pytest.raises(SourceRefused, match=r"^x9://…@box/x: cannot be opened: ") as refused:
        names("x9://me:x/hunter2@box/x")

    assert "hunter2" not in str(refused.value)


@pytest.mark.bad_input(44)
def test_removed_file_is_an_error(tmp_path: Path) -> None:
    """A file that a batch was planned for cannot simply be gone."""
    with pytest.raises(SourceNotFound, match="put the file back"):
        stat_file(f"{tmp_path}/gone.csv", "gone.csv", None)


@pytest.mark.parametrize(
    ("raised", "error", "message"),
    [
        (
            PermissionError(13, "Cannot list directory '/data'. Detail: [errno 13] Permission denied"),
            SourceUnreadable,
            r"/data: cannot be read \(\[errno 13\] Permission denied\); the user that runs Lakejoin needs the right",
        ),
        (OSError("AWS Error ACCESS_DENIED"), SourceUnreadable, "cannot be read .AWS Error ACCESS_DENIED.; "),
        (FileNotFoundError(2, "Failed to open"), SourceNotFound, "/data: not found; check the path"),
    ],
)
def test_what_the_system_refuses_is_an_error_of_the_source(
    raised: OSError, error: type[SourceError], message: str
) -> None:
    """A right that is missing, a store that does not answer, a file that was removed between two looks."""
    with pytest.raises(error, match=message), reading("/data"):
        raise raised


def test_path_that_cannot_be_looked_up_is_unreadable(tmp_path: Path) -> None:
    """The system says why."""
    with pytest.raises(SourceUnreadable, match=r"cannot be read .*name too long"):
        names(f"{tmp_path}/{'x' * 300}/*.jsonl")


def test_measured_file_keeps_what_was_found(write: Callable[..., FoundFile]) -> None:
    """Path, name, size and time are those of the listing; the fingerprint is 128 bits."""
    found = write("x.jsonl", b"a\n", modified=7)

    measured = measure_file(found, "jsonl")

    assert isinstance(measured, MeasuredFile)
    assert (measured.path, measured.size, measured.modified) == (found.path, 2, 7 * 10**9)
    assert len(measured.fingerprint) == 32
