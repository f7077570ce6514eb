"""The path that stands for files, found from the names of some."""

import pytest

from lakejoin.orchestration.proposals.paths import (
    dated,
    folder_of,
    is_load,
    name_in,
    pattern_of,
    skeleton,
    words,
)
from lakejoin.storage.sources.files.path_patterns import FilePattern


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["flights/2013-01-01.jsonl.gz", "flights/2013-01-02.jsonl.gz"], "flights/{date}.jsonl.gz"),
        (["flights/2013-01-01.jsonl.gz"], "flights/{date}.jsonl.gz"),
        (["2013-01-01/orders-2013-01-01.csv"], "{date}/orders-{date}.csv"),
        (["o/20261127-091500000.csv", "o/20261128-1.csv"], "o/{year}{month}{day}-*.csv"),
        (["a/2026_11_27_1795.jsonl", "a/2026_11_28_1796.jsonl"], "a/{year}_{month}_{day}_*.jsonl"),
        (["o/2026/11/27/part-0.parquet"], "o/{year}/{month}/{day}/part-*.parquet"),
        (
            ["o/year=2026/month=11/day=27/hour=04/orders.json"],
            "o/year={year}/month={month}/day={day}/hour={hour}/orders.json",
        ),
        (["k/topic+0+0000000042.json", "k/topic+1+0000000043.json"], "k/topic+*+*.json"),
        (["customers.csv"], "customers.csv"),
        (["d/LOAD00000001.csv"], "d/*.csv"),
        (["d/LOAD00000001.csv", "d/20261127-091500000.csv"], "d/*.csv"),
        (["d/LOAD00000001.csv", "d/2026/11/27/20261127-091500000.csv"], "d/**/*.csv"),
        (["eu.csv", "us.csv"], "*.csv"),
        (["weird[1]/a*b.csv"], "weird[[]1]/a[*]b.csv"),
        (["/in/1.json", "/in/2.json"], "/in/*.json"),
    ],
)
def test_path_matches_its_files(files: list[str], expected: str) -> None:
    """It is as narrow as their names allow, and matches each of them."""
    path = pattern_of(files)

    assert path == expected
    pattern = FilePattern.parse(path)
    top = (
        f"{pattern.directory.rstrip('/')}/"
        if pattern.directory not in {"", "/"} or files[0].startswith("/")
        else ""
    )
    if pattern.parts:
        assert all(pattern.match(file.removeprefix(top)) is not None for file in files)
    else:
        assert files == [pattern.directory]


@pytest.mark.parametrize("path", ["orders/2013-13-01.csv", "orders/99999999.csv", "orders/12026-11-277.csv"])
def test_no_date_is_no_field(path: str) -> None:
    """Numbers that cannot be a day stay numbers."""
    assert dated(path) == path


def test_names_of_files_and_folders() -> None:
    """A table is called as its files are, else as the nearest folder that has a name."""
    named = ("data/flights/{date}.jsonl.gz", "orders-1.csv", "o/year=2026/part-0.parquet")
    assert [name_in(path) for path in named] == [
        "flights", "orders", "o",
    ]  # fmt: skip
    assert skeleton("in/topic+0+0000000042.json") == "in/topic+*+*.json"
    assert (
        folder_of("dms/orders/2026/11/27/1.csv") == folder_of("dms/orders/LOAD00000001.csv") == "dms/orders"
    )
    assert words("a/LOAD00000001.csv") == words("a/20261127-1.csv") == frozenset()
    assert words("a/orders-1.csv") != words("a/returns-1.csv")
    assert is_load("LOAD0000000A.csv.gz")
    assert not is_load("DOWNLOAD00000001.csv")
