"""Which files are together one snapshot."""

from datetime import date

import pytest

from lakejoin.storage.sources.planned.planned_file import PlannedFile
from lakejoin.storage.sources.planned.snapshots import snapshots

DAY = date(2024, 1, 1)


def part(name: str, day: date | None = None) -> PlannedFile:
    """A file of ten records."""
    return PlannedFile("t", f"/in/{name}", name, day, 1, 1, "f", 10, True, 0, 10)


@pytest.mark.parametrize(
    ("path", "parts", "expected"),
    [
        ("/in/{date}/*", [part("a", DAY), part("b", DAY), part("a", date(2024, 1, 2))], [2, 1]),
        ("/in/{date}/{hour}/*", [part("00/a", DAY), part("00/b", DAY), part("13/a", DAY)], [2, 1]),
        ("/in/*/*.csv", [part("1/a.csv"), part("1/b.csv"), part("2/a.csv")], [2, 1]),
        ("/in/**/*.csv", [part("1/a.csv"), part("1/b/a.csv"), part("1/c.csv")], [2, 1]),
        ("/in/*.csv", [part("1.csv"), part("2.csv")], [1, 1]),
    ],
)
def test_files_of_a_day_an_hour_or_a_folder_are_together(
    path: str, parts: list[PlannedFile], expected: list[int]
) -> None:
    """Else each file is a snapshot of its own."""
    assert [len(together) for together in snapshots(path, parts)] == expected
