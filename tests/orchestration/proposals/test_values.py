"""The types of columns, guessed from values."""

from typing import Any

import pytest

from lakejoin.orchestration.proposals.values import Writing, decimal_of, guess

CSV, EVENT, ROW = Writing(is_text=True), Writing(is_event=True), Writing()
MICROS, MILLIS, NANOS = 1357041300000000, 1357041300000, 1357041300000000000


@pytest.mark.parametrize(
    ("name", "values", "writing", "expected"),
    [
        ("n", [1, None, 3], ROW, "bigint"),
        ("n", [1, 2.5], ROW, "double"),
        ("n", [2**63], ROW, "decimal(38,0)"),
        ("n", [1.5, "NaN", "-Infinity"], EVENT, "double"),
        ("n", ["NaN"], EVENT, "string"),
        ("n", [1, "__debezium_unavailable_value"], EVENT, "bigint"),
        ("b", [True, None], ROW, "boolean"),
        ("b", [True, 1], ROW, "string"),
        ("t", ["a", "b"], ROW, "string"),
        ("t", [{"a": 1}], ROW, "string"),
        ("t", [None, None], ROW, "string"),
        ("d", ["2013-01-01"], ROW, "date"),
        ("d", ["2013-01-01T10:00:00.000000Z"], EVENT, "timestamp"),
        ("d", ["2013-01-01 10:00:00+02:00"], ROW, "timestamp"),
        ("d", ["2013-01-01 10:00:00"], ROW, "timestamp_ntz"),
        ("d", ["2013-01-01 10:00:00.5"], Writing(is_text=True, has_zone=True), "timestamp"),
        ("zip", ["1234", "5678"], EVENT, "string"),
        ("zip", ["01234", "5678"], CSV, "string"),
        ("n", ["1", "", "-5"], CSV, "bigint"),
        ("n", ["1.5", "2"], CSV, "double"),
        ("n", ["1.5", "2"], ROW, "string"),
        ("b", ["true", "false"], CSV, "boolean"),
        ("amount", ["1.50", "22.75"], CSV, "decimal(18,2)"),
        ("amount", [{"scale": 1, "value": "FQ=="}], EVENT, "decimal(38,10)"),
        ("day", ["1962-02-01Z", None], EVENT, "date"),
        ("amount", ["1.50", "-22.75"], EVENT, "decimal(18,2)"),
        ("amount", ["12345678901234567.50"], EVENT, "decimal(38,2)"),
    ],
)
def test_type_is_that_of_all_values(name: str, values: list[Any], writing: Writing, expected: str) -> None:
    """One value that does not fit is enough for a wider type."""
    assert guess(name, values, writing).type == expected


@pytest.mark.parametrize(
    ("name", "values", "writing", "expected"),
    [
        ("sched_dep", [MICROS, 0], EVENT, ("timestamp_ntz", "micros")),
        ("sched_dep", [MILLIS], EVENT, ("timestamp_ntz", "millis")),
        ("sched_dep", [NANOS], EVENT, ("timestamp_ntz", "nanos")),
        ("updated_at", [MILLIS], ROW, ("timestamp", "millis")),
        ("phone", [MILLIS], ROW, ("bigint", None)),
        ("flight_id", [MICROS], EVENT, ("bigint", None)),
        ("updated_at", [MILLIS, 5], ROW, ("bigint", None)),
        ("seen", [0, 0], EVENT, ("bigint", None)),
        ("birth_date", [15706], EVENT, ("date", None)),
        ("seats", [15706], EVENT, ("bigint", None)),
        ("created_at", [1357041300], ROW, ("bigint", None)),
    ],
)
def test_numbers_are_times_where_all_are_of_our_days(
    name: str, values: list[int], writing: Writing, expected: tuple[str, str | None]
) -> None:
    """A number of thirteen digits may be anything, so the name has a say."""
    found = guess(name, values, writing)

    assert (found.type, found.unit) == expected


def test_what_nobody_can_tell_is_said() -> None:
    """A guess that may be wrong has a note."""
    assert "null" in guess("a", [None], ROW).note
    assert "seconds" in guess("created_at", [1357041300], ROW).note
    assert "precise" in guess("amount", ["MDk=", "Arw="], EVENT).note
    assert "JSON" in guess("tags", [["a"]], ROW).note
    assert guess("word", ["abcd", "efgh"], EVENT).note == ""


def test_decimals_have_as_many_digits_behind_the_point_everywhere() -> None:
    """Otherwise they are versions, or binary fractions."""
    assert decimal_of(["1.5", "1.50"]) is None
    assert decimal_of(["1", "2"]) is None
    assert decimal_of(["1.2.3"]) is None
    assert decimal_of(["1" * 40 + ".5"]) is None
