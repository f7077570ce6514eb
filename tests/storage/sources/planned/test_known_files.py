"""Which files were read as they are, told from what plans say of them. No Spark here."""

from dataclasses import replace
from datetime import date
from unittest.mock import patch

import pyarrow as pa
import pytest

from lakejoin.storage.lake.bookkeeping import row_schema
from lakejoin.storage.lake.plan import Plan
from lakejoin.storage.sources.files.source_files import FoundFile
from lakejoin.storage.sources.planned.known_files import KnownFiles
from lakejoin.storage.sources.planned.planned_file import PlannedFile
from lakejoin.storage.sources.planned.planned_files import PlannedFiles, files_of, rows_of

DAY = date(2013, 1, 9)
PART = PlannedFile("t", "/in/a", "a", DAY, 10, 7, "print", 2, True, 0, 2)
FOUND = FoundFile("/in/a", "a", DAY, 10, 7)


def named(name: str, **other: int) -> PlannedFile:
    """A part of a file, as a plan has it."""
    return replace(PART, path=f"/in/{name}", name=name, **other)  # type: ignore[arg-type]


def read_back(*files: PlannedFile) -> PlannedFiles:
    """Files as a plan has them that was read from a lake."""
    rows = pa.array([vars(file) for file in files], row_schema(Plan).field("files").type.value_type)
    return PlannedFiles(lambda: rows)


@pytest.mark.parametrize("alike", [False, True], ids=["hashes", "all with one hash"])
def test_only_what_is_read_to_its_end_and_unchanged_is_left_out(*, alike: bool) -> None:
    """Of a file that was planned in several parts the newest counts; one hash of two names leads to no other file."""
    plans = [
        (named("grown", to_line=1), named("same"), named("half", to_line=1)),
        read_back(named("touched"), named("grown", size=20, lines=4, from_line=1, to_line=4)),
    ]
    there = [
        FoundFile("/in/grown", "grown", DAY, 20, 7),
        replace(FOUND, path="/in/same", name="same", date=None),
        replace(FOUND, name="half"),
        replace(FOUND, name="touched", modified=8),
        replace(FOUND, name="longer", size=11),
        replace(FOUND, name="new"),
        replace(FOUND, name="as large as grown", size=20),
    ]

    with patch(
        "lakejoin.storage.sources.planned.known_files.hash", (lambda _: 1) if alike else hash, create=True
    ):
        known = KnownFiles([rows for files in plans for rows in rows_of(files, "t")])
        unread = [file.name for file in known.unread(there)]

        assert unread == ["half", "touched", "longer", "new", "as large as grown"]
        assert list(known) == ["grown", "same", "half", "touched"]
        assert known["grown"] == named("grown", size=20, lines=4, from_line=1, to_line=4)
        assert "new" not in known


def test_parts_of_a_plan_are_read_when_they_are_asked_for() -> None:
    """They are those that were written, whichever way they are gone through, and table by table."""
    parts = (named("a"), replace(named("b"), table="other", date=None), named("c"))
    asked = []

    def read() -> pa.StructArray:
        asked.append(True)
        return read_back(*parts).rows

    files = PlannedFiles(read)
    assert asked == []
    assert (tuple(files), files[1], files[1:], len(files)) == (parts, parts[1], parts[1:], 3)
    assert [file.name for file in files_of(files, "t")] == ["a", "c"]
    assert files == parts == files
    assert files != parts[:2]
    assert asked == [True]


def test_lake_without_files_has_read_none() -> None:
    """Nothing is found in nothing."""
    known = KnownFiles([])

    assert not known
    assert (list(known.unread([FOUND])), known.get("a"), known.has_in_name("a")) == ([FOUND], None, False)
