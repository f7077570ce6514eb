"""What `show` opens: names, filters, order, cuts."""

from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from lakejoin.orchestration.demo.example import Example
from lakejoin.orchestration.errors import WrongUsage
from lakejoin.orchestration.show.frame_view import View, view_by_key
from lakejoin.orchestration.show.tables import views

pytestmark = pytest.mark.spark

Rows = list[dict[str, str]]
Open = Callable[..., View]
COUNTS = {
    "flights": 43,
    "flights.rows": 45,
    "flights.changes": 106,
    "planes": 10,
    "planes.rows": 12,
    "planes.changes": 49,
    "weather": 3,
    "weather.rows": 3,
    "weather.changes": 28,
    "flights_with_planes": 43,
    "flights_with_planes_inner": 34,
    "flights_with_planes.subscription_store": 40,
    "flights_with_planes_inner.subscription_store": 40,
    "quarantine": 0,
}


@pytest.mark.parametrize(("name", "count"), COUNTS.items())
def test_table_has_the_rows_that_its_name_promises(
    read: Callable[[str], Rows], name: str, count: int
) -> None:
    """Live rows, rows with tombstones, every record, live subscriptions: as many as the recording has."""
    assert len(read(name)) == count


def test_every_name_can_be_opened(tiny: Example, view: Open) -> None:
    """No name is offered that does not work, and none of them shows internal columns unless asked."""
    for name in views(tiny.pipeline):
        opened = view(name)
        assert not [column for column in opened.shown(internal=False).columns if column.startswith("_lj_")]
        assert opened.name == name


@pytest.mark.parametrize("name", ["flights", "flights.changes", "flights_with_planes"])
def test_rows_are_sorted_by_key(read: Callable[[str], Rows], name: str) -> None:
    """Numbers by value, not by text; records of a key in their order."""
    rows = read(name)
    keys = [int(row["flight_id"]) for row in rows]
    assert keys == sorted(keys)


def test_cut_is_what_a_batch_left(read: Callable[[str, int], Rows]) -> None:
    """Each table is shown as it was after that batch, whatever came later."""
    assert [len(read("flights", batch)) for batch in (1, 2, 3)] == [40, 39, 43]
    assert [len(read("flights_with_planes_inner", batch)) for batch in (1, 2, 3)] == [30, 32, 34]
    assert {row["_lj_batch"] for row in read("flights_with_planes.response_log", 2)} == {"1", "2"}


@pytest.mark.parametrize("batch", [0, 4, -1])
def test_batch_that_is_not_published_is_refused(view: Open, batch: int) -> None:
    """The message says which there are."""
    with pytest.raises(WrongUsage, match="finished batches: 1 to 3"):
        view("flights", batch)


def test_condition_sees_internal_columns(view: Open) -> None:
    """Why a record was not applied can be asked for."""
    late = view("flights.changes").where("_lj_verdict = 'out_of_order'").shown(internal=False).collect()

    assert [row["flight_id"] for row in late] == [201, 202]


@pytest.mark.parametrize("condition", ["sets > 3", "seats >", "seats + 1"])
def test_condition_that_is_none_is_refused(view: Open, condition: str) -> None:
    """The message names the columns there are."""
    with pytest.raises(WrongUsage, match=r"--where .*\ncolumns of planes: tailnum, year"):
        view("planes").where(condition)


def test_key_of_a_log_is_the_primary_key(view: Open) -> None:
    """One flight's way through the join can be followed."""
    rows = view("flights_with_planes.subscription_log").of_key("102").shown(internal=False).collect()

    assert [(row["foreign_key"]["tailnum"], row["instruction"]) for row in rows] == [
        ("N1AAA", "PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE"),
        ("N1AAA", "DELETE_KEY_NO_PROPAGATE"),
        ("N2BBB", "PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE"),
    ]


def test_key_with_a_null_is_refused(spark: SparkSession) -> None:
    """It is not taken for the text `null`, which a row may have."""
    rows = spark.sql("SELECT 1 AS line, 'null' AS part")
    opened = view_by_key("lines", rows, ("line", "part"))

    assert opened.of_key('[1, "null"]').rows.count() == 1
    with pytest.raises(WrongUsage, match=r"--key '\[1, null\]': found null, which no column of a key is"):
        opened.of_key("[1, null]")


def test_table_without_a_key_takes_none(view: Open) -> None:
    """Quarantined records may have no key."""
    with pytest.raises(WrongUsage, match="quarantine has no key"):
        view("quarantine").of_key("102")
