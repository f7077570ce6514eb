"""Which files a source has, and which are refused."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from unittest.mock import patch

import pytest

from lakejoin.storage.errors import (
    SourceError,
    SourceNotFound,
    SourceRefused,
    SourceUnreadable,
)
from lakejoin.storage.filesystem import reading
from lakejoin.storage.sources.files.path_patterns import fixed
from lakejoin.storage.sources.files.source_files import FoundFile, each_file, find_files, stat_file

NOW = datetime(2030, 1, 1, tzinfo=UTC)
ANY_AGE = timedelta(0)


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


def test_folders_of_other_years_and_months_are_not_listed(
    tmp_path: Path, write: Callable[..., FoundFile]
) -> None:
    """Nor those of other days, on either side: https://github.com/elastic/elasticsearch/issues/153618 read them all."""
    months = ["year=2012/month=12", "year=2013/month=9", "year=2013/month=10", "year=2013/month=11"]
    for name in [f"{month}/day={day}/a.json" for month in months for day in (3, 20)]:
        write(name)
    for outside in ("2012/month=12", "2013/month=9", "2013/month=10/day=3", "2013/month=11"):
        (tmp_path / f"year={outside}" / "day=4").symlink_to(tmp_path)
    path = f"{tmp_path}/year={{year}}/month={{month}}/day={{day}}/*.json"
    day = date(2013, 10, 20)

    found = find_files(path, settle=ANY_AGE, now=NOW, since=day, until=day)

    assert [(file.date, file.name) for file in found] == [(day, "year=2013/month=10/day=20/a.json")]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("year={year}/month={month}/day={day}/*.json", ["2013-09-30", "2013-10-01", "2013-10-02"]),
        ("**/day={day}/{year}_{month}_*.json", []),
        ("{year}{month}{day}T{hour}*.csv", ["2013-09-30 09/20130930T0915.csv", "2013-09-30 10/20130930T1000.csv"]),
        ("{year}/{date}/*-{hour}.csv", ["2013-09-30 09/2013/2013-09-30/b-9.csv",
                                        "2013-09-30 10/2013/2013-09-30/a-10.csv"]),
        ("date={date}/hour={hour}/*.json", ["2013-09-30 09/date=2013-09-30/hour=9/b.json",
                                            "2013-09-30 10/date=2013-09-30/hour=10/a.json"]),
        ("x*{day}-{month}-{year}.txt", ["2013-09-30"]),
    ],
)  # fmt: skip
def test_numbers_make_days_and_hours(
    tmp_path: Path, write: Callable[..., FoundFile], pattern: str, expected: list[str]
) -> None:
    """Without padding as well; what stands twice is the same, and an hour orders before the rest of the name."""
    for name in (
        "year=2013/month=9/day=30/a.json",
        "year=2013/month=10/day=1/a.json",
        "year=2013/month=10/day=02/a.json",
        "year=2013/month=10/day=2x/a.json",
        "20130930T0915.csv",
        "20130930T1000.csv",
        "2013/2013-09-30/a-10.csv",
        "2013/2013-09-30/b-9.csv",
        "2014/2013-09-30/c-9.csv",
        "date=2013-09-30/hour=10/a.json",
        "date=2013-09-30/hour=9/b.json",
        "x7-30-9-2013.txt",
        "x7-30-9-20130.txt",
    ):
        write(name)

    found = find_files(f"{tmp_path}/{pattern}", settle=ANY_AGE, now=NOW)

    shown = [f"{file.date} {file.name}" if "hour" in pattern else str(file.date) for file in found]
    assert shown == expected


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


@pytest.mark.parametrize("name", ["a[1].jsonl", "a*.jsonl", "{date}.jsonl"])
def test_file_is_found_whose_name_looks_like_a_pattern(tmp_path: Path, name: str) -> None:
    """A path that is written so that signs stand for themselves names it, and nothing else."""
    for other in (name, "a1.jsonl", "2013-01-01.jsonl"):
        (tmp_path / other).touch()

    found = find_files(f"{tmp_path}/{fixed(name)}", settle=timedelta(0), now=datetime.now(UTC))

    assert [file.name for file in found] == [name]


def test_uri_finds_the_files_of_its_path(tmp_path: Path, write: Callable[..., FoundFile]) -> None:
    """A URI is listed through the same code, and its files keep it."""
    write("a/2013-01-01.jsonl")

    found = find_files(f"file://{tmp_path}/a/{{date}}.jsonl", settle=ANY_AGE, now=NOW)

    assert [(file.path, file.name) for file in found] == [
        (f"file://{tmp_path}/a/2013-01-01.jsonl", "2013-01-01.jsonl")
    ]


def test_files_pass_while_their_directory_is_read(tmp_path: Path, write: Callable[..., FoundFile]) -> None:
    """A folder of a million files is not held; and their sizes and times are those that are looked up one by one."""
    one = write("a.csv", b"x\n", modified=1_234_567)
    scan, passed = os.scandir, list[str]()

    @contextmanager
    def endless(folder: str) -> Iterator[Iterator[os.DirEntry[str]]]:
        def entries() -> Iterator[os.DirEntry[str]]:
            while True:
                with scan(folder) as found:
                    for entry in found:
                        passed.append(entry.name)
                        yield entry

        yield entries()

    with patch("os.scandir", endless):
        found = each_file(f"{tmp_path}/*.csv", settle=ANY_AGE, now=NOW)

        assert [next(found), next(found)] == [one, one]
    assert len(passed) == 2


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
        ("{year}-{month}-{day}.jsonl", SourceRefused, "2013-02-30 is no day"),
        ("{date}T{hour}.jsonl", SourceRefused, "24 is no hour from 0 to 23"),
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
    for name in (
        "a.csv",
        "_a.csv",
        "2013-02-30.jsonl",
        "2013-02-03T24.jsonl",
        "10:00.json",
        "dir/x.csv",
        "links/a.csv",
    ):
        write(name)
    (tmp_path / "links/b.csv").symlink_to(tmp_path / "a.csv")
    (tmp_path / "links/c").symlink_to(tmp_path / "dir")

    with pytest.raises(error, match=message):
        names(f"{tmp_path}/{pattern}")


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
