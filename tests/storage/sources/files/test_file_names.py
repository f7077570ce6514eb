"""By which name a lake knows a file, so that the text of names orders files as they are meant to be read."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from lakejoin.storage.errors import SourceRefused
from lakejoin.storage.sources.files.file_names import FileOrder, by_number, out_of_order, without_keys
from lakejoin.storage.sources.files.source_files import FoundFile, find_files
from lakejoin.storage.sources.formats.jsonl import Jsonl
from lakejoin.storage.sources.formats.source_format import Look, SourceSpec
from lakejoin.storage.sources.planned.planned_file import PlannedFile

NOW = datetime(2030, 1, 1, tzinfo=UTC)
DAY = date(2013, 1, 9)


def test_numbers_are_ordered_by_value() -> None:
    """Of parts that were numbered as they came: https://github.com/martymac/fpart/issues/12."""
    names = [
        f"x/part.{number}.y{other}"
        for number in (0, 1, 9, 10, 11, 99, 100, 12345678901234567890123)
        for other in (2, 30)
    ]

    assert sorted(names, key=by_number) == names
    assert sorted(map(by_number, ["9", "011", "0", "10", "008"])) == ["0", "8", "9", ":10", ":11"]


@pytest.mark.parametrize(
    ("known", "new", "swapped"),
    [
        (["8", "9"], ["10"], [("10", "8")]),
        (["8"], ["9"], []),
        (["08", "09"], ["10"], []),
        (["9", "10"], ["8", "11"], []),  # a lake that has read them goes on
        ([], ["a-9.json", "b-10.json"], []),
        ([], ["0c9f-3fa9.json", "0c9f-12ab.json"], []),  # no numbers, but hexadecimal
        ([], ["part-2", "part-10", "part-1"], [("part-10", "part-2")]),
    ],
)
def test_names_and_numbers_that_disagree_are_found(
    known: list[str], new: list[str], swapped: list[tuple[str, str]]
) -> None:
    """Only where a new file brings it, and only among names that differ in nothing but numbers."""

    def read() -> list[tuple[date, str]]:
        return [(DAY, name) for name in known]

    assert out_of_order(read, [(DAY, name) for name in [*known, *new]]) == swapped
    assert out_of_order(read, [(date(2013, 1, 10), name) for name in new]) == [
        pair for pair in swapped if set(pair) <= set(new)
    ]


def test_files_are_found_in_the_order_of_their_numbers(
    tmp_path: Path, write: Callable[..., FoundFile]
) -> None:
    """Digits that a field of the path stands for are left as they are."""
    for name in (
        "2013-01-09/9.json",
        "2013-01-09/10.json",
        "2013-01-09/a10b9.json",
        "2013-01-09/a10b010.json",
    ):
        write(name)

    found = find_files(f"{tmp_path}/{{date}}/*", settle=timedelta(0), now=NOW, order="number")

    assert [(Path(file.path).name, file.name) for file in found] == [
        ("9.json", "2013-01-09/9.json"),
        ("10.json", "2013-01-09/:10.json"),
        ("a10b9.json", "2013-01-09/a:10b9.json"),
        ("a10b010.json", "2013-01-09/a:10b:10.json"),
    ]
    write("2013-01-09/09.json")
    with pytest.raises(SourceRefused, match=r"9\.json: has the same numbers in its name as .*/09\.json"):
        find_files(f"{tmp_path}/{{date}}/*", settle=timedelta(0), now=NOW, order="number")


@pytest.mark.parametrize(
    ("name", "order", "path", "message"),
    [
        ("9.json", "number", "9.json", None),
        ("01/2013-01-09T01/9.json", "number", "2013-01-09T01/9.json", None),
        (":10.json", "number", "10.json", None),
        ("10.json", "name", "10.json", None),
        ("10.json", "number", "10.json", "10.json was read, and is :10.json by `file_order: number`"),
        (":10.json", "name", "10.json", ":10.json was read, and is 10.json by `file_order: name`"),
        (":10.json", None, "10.json", "by no `file_order`"),
    ],
)
def test_lake_keeps_the_names_by_which_it_knows_files(
    tmp_path: Path,
    write: Callable[..., FoundFile],
    name: str,
    order: FileOrder,
    path: str,
    message: str | None,
) -> None:
    """One that has read numbers of one digit may begin to order them as numbers; else files would be read twice."""
    write(path)
    spec = SourceSpec("orders", f"{tmp_path}/{'{date}T{hour}/' if 'T' in path else ''}*.json", order=order)
    known = {name: PlannedFile("orders", f"/moved/{path}", name, None, 0, 0, "", 0, True, 0, 0)}

    if message is None:
        assert Jsonl().waiting(spec, known, Look(NOW)).held == 1
    else:
        with pytest.raises(SourceRefused, match=message):
            Jsonl().waiting(spec, known, Look(NOW))


def test_keys_and_headers_of_kafka_connect_are_passed_over() -> None:
    """Beside their values: https://github.com/confluentinc/kafka-connect-storage-cloud/pull/325 writes all three."""
    values = {"t/p=0/t+0+0000000042.json", "t/p=0/t+10+7.json.gz"}
    beside = {
        "t/p=0/t+0+0000000042.keys.json",
        "t/p=0/t+0+0000000042.headers.json",
        "t/p=0/t+10+7.keys.json.gz",
    }
    alone = {"t/p=0/t+0+0000000043.keys.json", "a.keys.json", "a.json", "b.json", "b+1.keys.json", "b+1.json"}

    listed = sorted(values | beside | alone)

    for names in (listed, listed[::-1]):
        assert (
            set(without_keys(sorted(names, key=lambda name: name.rpartition("/")[0]), str)) == values | alone
        )
