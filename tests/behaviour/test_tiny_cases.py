"""Each case of the tiny recording's README: its rows, what they are joined with each day, its verdicts."""

import csv
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lakejoin.orchestration.demo.example import Example

pytestmark = pytest.mark.spark

DATA = Path(__file__).parents[1] / "data" / "flights-cdc-tiny"
DAYS = ("2013-03-01", "2013-03-02", "2013-03-03")
GONE, NULL = "gone", r"\N"
VERDICTS = {"A": "applied", "T": "tombstone", "O": "out_of_order", "D": "duplicate", "H": "history"}

Read = Callable[[str, int | None], list[dict[str, str]]]


@dataclass(frozen=True)
class Flight:
    """What a flight shows after each day: its foreign key and the seats of the plane it is joined with."""

    key: str
    trail: tuple[str, str, str]
    """`foreign key>seats`, the foreign key alone where nothing matches, or gone."""
    verdicts: str
    """Of its records, in their order."""


@dataclass(frozen=True)
class Other:
    """A row of a table that is no left side: the value of one column after each day."""

    table: str
    key: str
    trail: tuple[str, str, str]
    verdicts: str


def flights(numbers: Iterable[int], trail: str, verdicts: str) -> tuple[Flight, ...]:
    """Return several flights that fare alike; `trail` has a word for each day."""
    first, second, third = trail.split(" ")
    return tuple(Flight(str(number), (first, second, third), verdicts) for number in numbers)


def flight(number: int, trail: str, verdicts: str) -> tuple[Flight, ...]:
    """Return one flight."""
    return flights((number,), trail, verdicts)


def plane(key: str, trail: str, verdicts: str) -> tuple[Other, ...]:
    """Return a plane with its seats after each day."""
    first, second, third = trail.split(" ")
    return (Other("planes", key, (first, second, third), verdicts),)


def station(key: str, trail: str, verdicts: str) -> tuple[Other, ...]:
    """Return a station with its temperature after each day."""
    first, second, third = trail.split(" ")
    return (Other("weather", key, (first, second, third), verdicts),)


CASES: dict[str, tuple[Flight | Other, ...]] = {
    "101": flight(101, "N1AAA>101 N1AAA>101 N1AAA>104", "AAA"),
    "102": flight(102, "N2BBB>100 N2BBB>102 N2BBB>102", "AA"),
    "103": flight(103, "N1AAA>101 N1AAA>101 N1AAA>104", "AAA"),
    "104": flight(104, "N1AAA>101 N1AAA>101 N1AAA>104", "AAA"),
    "105": flight(105, r"\N \N \N", "AAAA"),
    "106": flight(106, "N1AAA>101 N1AAA>101 N1AAA>104", "AA"),
    "107": flight(107, r"\N \N \N", "AA"),
    "108": flight(108, "N2BBB>100 N2BBB>102 N2BBB>102", "AA"),
    "109": flight(109, "  ", "A"),
    "110": flight(110, "NXNONE NXNONE NXNONE", "AA"),
    "111, 112": flights((111, 112), "N10LATE N10LATE>55 N10LATE>55", "A"),
    "N10LATE": plane("N10LATE", "gone 55 55", "AA"),
    "113": flight(113, "N3CCC>100 N3CCC>77 N3CCC>77", "AA"),
    "114": flight(114, "gone gone gone", "AAAT"),
    "115": flight(115, "N3CCC>100 N3CCC>77 N3CCC>77", "AATA"),
    "116": flight(116, "N1AAA>101 N1AAA>101 N1AAA>104", "AATA"),
    "117": flight(117, "gone gone gone", "AAT"),
    "118": flight(118, "N3CCC>100 N3CCC>77 N3CCC>77", "AAAA"),
    "119": flight(119, "N3CCC>100 N3CCC>77 N3CCC>77", "AA"),
    "120": flight(120, "N1AAA>101 N1AAA>101 N1AAA>104", "AAA"),
    "121": flight(121, "N1AAA>101 gone N5BACK>188", "AATAATA"),
    "122": flight(122, "N4DEL N4DEL N4DEL", "A"),
    "N4DEL": plane("N4DEL", "gone gone gone", "AAT"),
    "123": flight(123, "N5BACK N5BACK>188 N5BACK>188", "A"),
    "N5BACK": plane("N5BACK", "gone 188 188", "AATAA"),
    "130..139": (
        *flights(range(130, 135), "N0TBA>1 N0TBA>2 N0TBA>3", "A"),
        *flights(range(135, 140), "N0TBA>1 N0TBA>2 N0TBA>3", "AAA"),
    ),
    "N0TBA": plane("N0TBA", "1 2 3", "AAAATAA"),
    "N1AAA": plane("N1AAA", "101 101 104", "AAAAA"),
    "N9TEXT": plane("N9TEXT", "100 100 100", "AA"),
    "124": flight(124, "N9TEXT>100 N9TEXT>100 N9TEXT>100", "A"),
    "N6FLAP": plane("N6FLAP", "100 63 63", "AATAATAA"),
    "208": flight(208, "N6FLAP>100 N6FLAP>63 N6FLAP>63", "A"),
    "N7KEY / N7NEW": (*plane("N7KEY", "100 gone gone", "AAT"), *plane("N7NEW", "gone 100 100", "AA")),
    "205": flight(205, "N7KEY>100 N7NEW>100 N7NEW>100", "AA"),
    "206": flight(206, "N7KEY>100 N7KEY N7KEY", "A"),
    "N8MANY": plane("N8MANY", "100 82 82", "AAAAA"),
    "N2BBB": plane("N2BBB", "100 102 102", "AAA"),
    "201, 202, 203 (day 2, 11:00)": (
        *flight(201, "N1AAA>101 N1AAA>101 N1AAA>104", "AAAODA"),
        *flight(202, "N2BBB>100 N2BBB>102 N2BBB>102", "AAAOD"),
        *flight(203, "N3CCC>100 N3CCC>77 N3CCC>77", "AADA"),
    ),
    "N3CCC": plane("N3CCC", "100 77 77", "AAAA"),
    "302": flight(302, "gone gone N11NEXT", "A"),
    "JFK": station("JFK", "52.0 44.0 16.5", "AAHAAAATAA"),
    "EWR": station("EWR", "51.0 40.0 15.5", "A" * 13 + "HAAA"),
    "LGA": station("LGA", "gone gone 17.5", "A"),
}
IN_TESTS_OF_THEIR_OWN = {"day 2, 10:00", "day 3, 09:10"}


def readme_cases() -> list[str]:
    """Return the first column of the README's table of cases."""
    table = (DATA / "README.md").read_text().partition("| key | case |\n| --- | --- |\n")[2]
    return [line.split(" | ")[0].removeprefix("| ") for line in table.splitlines()]


def test_every_case_of_the_readme_is_here() -> None:
    """No case of the table is left out, and none is here that is not in it."""
    assert set(readme_cases()) == set(CASES) | IN_TESTS_OF_THEIR_OWN


@pytest.mark.parametrize("case", CASES)
def test_case(case: str, tiny: Example, read: Read) -> None:
    """The keys of a case have PostgreSQL's rows after each day, the expected match, and their verdicts."""
    for subject in CASES[case]:
        table = "flights" if isinstance(subject, Flight) else subject.table
        key = tiny.pipeline.tables[table].key[0]
        records = [row for row in read(f"{table}.changes", None) if row[key] == subject.key]
        records.sort(
            key=lambda row: (row["_lj_position"].split(":")[0], int(row["_lj_position"].split(":")[1]))
        )
        assert [row["_lj_verdict"] for row in records] == [VERDICTS[letter] for letter in subject.verdicts]
        if isinstance(subject, Flight):
            check_flight(subject, tiny, read)
        else:
            check_row(subject, tiny, read)


def check_flight(flight: Flight, tiny: Example, read: Read) -> None:
    """Hold a flight's row in both joins against PostgreSQL's, and against what its case says."""
    for batch, (day, expected) in enumerate(zip(DAYS, flight.trail, strict=True), start=1):
        left = find(read("flights_with_planes", batch), "flight_id", flight.key)
        inner = find(read("flights_with_planes_inner", batch), "flight_id", flight.key)
        assert is_answer(left, day, "left_join", "flight_id", flight.key, tiny)
        assert is_answer(inner, day, "inner_join", "flight_id", flight.key, tiny)
        foreign_key, _, seats = expected.partition(">")
        assert (left["tailnum"] if left else GONE) == foreign_key
        assert (left["plane_seats"] if left else NULL) == (seats or NULL)
        assert (inner["plane_tailnum"] if inner else None) == (foreign_key if seats else None)


def check_row(row: Other, tiny: Example, read: Read) -> None:
    """Hold a table's row against PostgreSQL's, and against what its case says."""
    key, column = ("tailnum", "seats") if row.table == "planes" else ("station", "temp")
    for batch, (day, expected) in enumerate(zip(DAYS, row.trail, strict=True), start=1):
        found = find(read(row.table, batch), key, row.key)
        assert is_answer(found, day, row.table, key, row.key, tiny)
        assert (found[column] if found else GONE) == expected


@pytest.mark.bad_input(13)
def test_added_column_is_null_for_rows_written_before(read: Read) -> None:
    """Of "day 2, 10:00": `engine` is there from the ALTER on, null in rows that were not touched since."""
    engines = [{row["plane_engine"] for row in read("flights_with_planes", batch)} for batch in (1, 2, 3)]

    assert engines == [{NULL}, {NULL, "Turbo-fan"}, {NULL, "Turbo-fan"}]
    turbofans = [row["tailnum"] for row in read("planes", 2) if row["engine"] == "Turbo-fan"]
    assert turbofans == ["N1AAA"]


def test_bulk_update_reaches_every_flight_of_its_planes(read: Read) -> None:
    """Of "day 3, 09:10": all AIRBUS planes change in one transaction, and every flight with one shows it."""
    planes = [row for row in read("planes", 3) if row["manufacturer"] == "AIRBUS"]
    joined = [row for row in read("flights_with_planes", 3) if row["plane_manufacturer"] == "AIRBUS"]

    assert {row["event_time"] for row in planes} == {"2013-03-03T14:10:00.000000Z"}
    assert {row["plane_event_time"] for row in joined} == {"2013-03-03T14:10:00.000000Z"}
    assert len(joined) > len(planes)


def find(rows: list[dict[str, str]], column: str, key: str) -> dict[str, str] | None:
    """Return the only row of a key."""
    found = [row for row in rows if row[column] == key]
    assert len(found) <= 1
    return found[0] if found else None


def is_answer(
    found: dict[str, str] | None, day: str, answer: str, column: str, key: str, tiny: Example
) -> bool:
    """Whether a row is PostgreSQL's of that day, in every column of its header."""
    with (DATA / "expected" / day / f"{answer}.csv").open(newline="") as file:
        expected = find(list(csv.DictReader(file)), column, key)
    if expected is None or found is None:
        return expected is None and found is None
    # a join may show less
    shown = {name: plain(value) for name, value in expected.items() if answer == "left_join" or name in found}
    return {name: plain(value) for name, value in found.items() if name in expected} == shown


def plain(text: str) -> object:
    """Return a time or number as such, however it was written; other text as it stands."""
    if re.fullmatch(r"-?\d+(\.\d+)?", text):
        return float(text) if "." in text else int(text)
    if re.match(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d", text):
        found = datetime.fromisoformat(text)
        return found if found.tzinfo else found.replace(tzinfo=UTC)
    return text
