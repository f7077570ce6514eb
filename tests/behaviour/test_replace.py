"""A file that was exported again: afterwards the lake is as if it had only ever seen the new file."""

import os
import random
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from faults.crashing import Crash, commits
from faults.shop import joins, make_pipeline, run, texts, write_lines
from lakejoin.orchestration.config import Pipeline, load
from lakejoin.orchestration.errors import WrongUsage
from lakejoin.orchestration.lake_state.published_snapshot import published_snapshot
from lakejoin.orchestration.maintenance.maintain import maintain
from lakejoin.storage.errors import SourceChanged, SourceNotFound
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.state.pinned_state import State
from lakejoin.transforms.model.schemas import DELETED, named

pytestmark = pytest.mark.spark

TEXT = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {{format: jsonl, path: "orders/{{date}}.jsonl"}}
    columns: {{id: bigint, customer: string, amount: int, rev: int}}
    key: [id]
{sequence}  customers:
    source: {{format: jsonl, path: "customers/{{date}}.jsonl"}}
    columns: {{customer: string, city: string}}
    key: [customer]
joins:
  inner: {{left: orders, right: customers, foreign_key: [customer], how: inner, changelog: true}}
  left: {{left: orders, right: customers, foreign_key: [customer], how: left}}
"""
STREAM = """\
streams:
  clicks:
    source: {format: jsonl, path: "clicks/{date}.jsonl"}
    columns: {id: bigint, customer: string, at: timestamp}
    key: [id]
    event_time: at
joins:
  seen: {stream: clicks, table: customers, foreign_key: [customer], how: left}
"""
Records = Mapping[str, Sequence[dict[str, object]]]
"""Records by table."""
Days = Mapping[str, Records]
"""The same by day."""


def order(
    op: str, key: int, customer: str | None = None, amount: int | None = None, rev: int = 0
) -> dict[str, object]:
    """A record of the orders."""
    return {"op": op, "id": key, "customer": customer, "amount": amount, "rev": rev}


def customer(op: str, name: str, city: str | None = None) -> dict[str, object]:
    """A record of the customers."""
    return {"op": op, "customer": name, "city": city}


def declare(folder: Path, days: Days, *, sequence: bool = False) -> Pipeline:
    """Write a pipeline and its input."""
    for day, tables in days.items():
        for table, records in tables.items():
            write_lines(folder / table / f"{day}.jsonl", records)
    return make_pipeline(folder, TEXT.format(sequence="    sequence: [rev]\n" if sequence else ""))


def results(pipeline: Pipeline, spark: SparkSession) -> dict[str, list[str]]:
    """Live rows of tables, with all that the next records are held against, and of joins."""
    state = State(spark, Lake(pipeline.lake), published_snapshot(Journal(Lake(pipeline.lake))))
    found = joins(pipeline, spark)
    for name, table in pipeline.tables.items():
        live = state.all_rows(table.spec).where(~named(DELETED))
        found[name] = texts(live.drop("_lj_batch", "_lj_time"))
    return found


FIRST = {
    "orders": [
        order("c", 1, "ada", 10),
        order("c", 2, "bob", 20),
        order("c", 3, "ada", 30),
        order("c", 4, "eve", 40),
    ],
    "customers": [customer("c", "ada", "Paris"), customer("c", "bob", "Rome")],
}
OLD = {
    "orders": [
        order("u", 1, "bob", 11), order("d", 2), order("c", 5, "ada", 50), order("u", 3, "bob", 31),
        order("c", 7, "bob", 70), order("c", 8, "ada", 80),
    ],
    "customers": [customer("c", "eve", "Bonn"), customer("u", "ada", "Lyon")],
}  # fmt: skip
NEW = {
    # 1 is as before this day, 2 lives, 5 never was, 3 moves elsewhere, 6 is new, 7 is the same, 8 comes and goes
    "orders": [
        order("u", 3, "eve", 31), order("c", 6, "bob", 60), order("c", 7, "bob", 70), order("c", 8, "ada", 80),
        order("d", 8),
    ],
    # eve never was, bob moves
    "customers": [customer("u", "ada", "Lyon"), customer("u", "bob", "Oslo")],
}  # fmt: skip
THIRD = {
    "orders": [order("u", 4, "bob", 44), order("u", 3, "ada", 33), order("u", 5, "bob", 51)],
    "customers": [customer("d", "ada")],
}
FOURTH = {
    "orders": [order("u", 2, "eve", 22), order("c", 5, "eve", 55), order("d", 6), order("u", 1, "eve", 12)],
    "customers": [customer("c", "eve", "Kiel"), customer("u", "bob", "Bari")],
}
DAY = date(2024, 1, 2)


def both(
    folder: Path, days: Days, old: Records, spark: SparkSession, *, sequence: bool = False
) -> tuple[Pipeline, Pipeline]:
    """A lake where the second day was exported again and replaced, and one that only saw what it is now."""
    pipeline = declare(folder / "replaced", {**days, str(DAY): old}, sequence=sequence)
    run(pipeline, spark)
    pipeline = declare(folder / "replaced", days, sequence=sequence)
    assert run(pipeline, spark, replace=DAY) == 1
    expected = declare(folder / "expected", days, sequence=sequence)
    run(expected, spark)
    return pipeline, expected


@pytest.mark.slow
def test_replacement_that_was_cut_off_can_be_asked_for_again(tmp_path: Path, spark: SparkSession) -> None:
    """The same command finishes it, and goes on with what else is new; a third time there is nothing to replace."""
    pipeline = declare(tmp_path / "shop", {str(DAY): FIRST})
    run(pipeline, spark)
    declare(tmp_path / "shop", {str(DAY): NEW, "2024-01-03": THIRD})
    with commits("joins/left/joined"), pytest.raises(Crash):
        run(pipeline, spark, replace=DAY)

    assert run(pipeline, spark, replace=DAY) == 2

    assert [batch.kind for batch in Journal(Lake(pipeline.lake)).published] == ["batch", "replace", "batch"]
    with pytest.raises(WrongUsage, match="no file of that day"):
        run(pipeline, spark, replace=DAY)


@pytest.mark.slow
def test_lake_is_as_if_it_had_only_seen_the_new_file(tmp_path: Path, spark: SparkSession) -> None:
    """Rows and joins, also after the next day; and the counts say what changed."""
    days = {"2024-01-01": FIRST, str(DAY): NEW, "2024-01-03": THIRD}
    replaced, expected = both(tmp_path, days, OLD, spark)
    assert results(replaced, spark) == results(expected, spark)
    last = Journal(Lake(replaced.lake)).last
    counts = {name: count for name, count in last.tables["orders"].items() if count and name != "versions"}
    assert counts == {
        "records": 5, "applied": 3, "duplicate": 2, "changed": 5, "inserted": 2, "removed": 1, "restored": 2,
    }  # fmt: skip
    assert last.kind == "replace"
    for pipeline in (replaced, expected):
        declare(pipeline.path.parent, {"2024-01-04": FOURTH})
        run(pipeline, spark)
    assert results(replaced, spark) == results(expected, spark)


@pytest.mark.slow
def test_a_file_can_be_replaced_again_and_folded_between(tmp_path: Path, spark: SparkSession) -> None:
    """The second time nothing of the first file and of the first replacement counts."""
    days = {"2024-01-01": FIRST, str(DAY): OLD, "2024-01-03": THIRD}
    pipeline = declare(tmp_path / "replaced", days)
    run(pipeline, spark)
    for content in (NEW, OLD):
        declare(tmp_path / "replaced", {str(DAY): content})
        run(pipeline, spark, replace=DAY)
        list(maintain(pipeline, lambda: spark, everything=True))
    expected = declare(tmp_path / "expected", days)
    run(expected, spark)
    assert results(pipeline, spark) == results(expected, spark)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_any_file_can_be_replaced(seed: int, tmp_path: Path, spark: SparkSession) -> None:
    """Random days, with sequences of their own or in the order of their position."""
    random.seed(seed)

    def records(count: int) -> dict[str, list[dict[str, object]]]:
        names = ["ada", "bob", "eve", None]
        orders = [
            order(
                random.choice("cud"),
                random.randrange(8),
                random.choice(names),
                random.randrange(3),
                random.randrange(6),
            )
            for _ in range(count)
        ]
        customers = [
            customer(random.choice("ud"), random.choice(names[:3]), random.choice("XY")) for _ in range(3)
        ]
        return {"orders": orders, "customers": customers}

    days = {f"2024-01-0{day}": records(10) for day in (1, 2, 3)}
    replaced, expected = both(tmp_path, days, records(10), spark, sequence=bool(seed % 2))
    assert results(replaced, spark) == results(expected, spark)
    fourth = records(10)
    for pipeline in (replaced, expected):
        declare(pipeline.path.parent, {"2024-01-04": fourth}, sequence=bool(seed % 2))
        run(pipeline, spark)
    assert results(replaced, spark) == results(expected, spark)


def test_what_cannot_be_replaced_is_refused_before_anything_is_written(
    tmp_path: Path, spark: SparkSession
) -> None:
    """Without the option the changed file stops the run and is told of it; a day without changes is refused."""
    pipeline = declare(tmp_path / "shop", {"2024-01-01": FIRST, str(DAY): OLD})
    run(pipeline, spark)
    with pytest.raises(WrongUsage, match="--replace 2024-01-02: no file of that day"):
        run(pipeline, spark, replace=DAY)
    declare(tmp_path / "shop", {str(DAY): NEW})
    with pytest.raises(SourceChanged, match="`lakejoin run FILE --replace 2024-01-02`"):
        run(pipeline, spark)
    assert len(Journal(Lake(pipeline.lake)).plans) == 2


@pytest.mark.slow
def test_file_without_a_date_is_replaced_by_its_name(tmp_path: Path, spark: SparkSession) -> None:
    """The error says how, by the name that the lake has for it; the file's own will do. Other files stay."""
    old, new = OLD["customers"], [customer("c", "ada", "Nice"), customer("c", "bob", "Rome")]

    def begin(name: str, customers: Sequence[dict[str, object]]) -> Pipeline:
        folder = declare(tmp_path / name, {"2024-01-01": {"orders": FIRST["orders"]}}).path.parent
        text = (folder / "lakejoin.yaml").read_text()
        write_lines(folder / "of the shop" / "customers 10.jsonl", customers)
        write_lines(folder / "of the shop" / "later.jsonl", [customer("c", "eve", "Kiel")])
        numbered = '"of the shop/*.jsonl", file_order: number'
        return make_pipeline(folder, text.replace('"customers/{date}.jsonl"', numbered))

    pipeline, expected = begin("replaced", old), begin("expected", new)
    run(pipeline, spark)
    run(expected, spark)
    write_lines(tmp_path / "replaced" / "of the shop" / "customers 10.jsonl", new)
    with pytest.raises(SourceChanged, match=r"`lakejoin run FILE --replace 'customers :10\.jsonl'`"):
        run(pipeline, spark)
    with pytest.raises(
        WrongUsage, match=r"--replace later.jsonl: no file of the name 'later.jsonl' that was read"
    ):
        run(pipeline, spark, replace="later.jsonl")
    assert run(pipeline, spark, replace="customers 10.jsonl") == 1
    assert results(pipeline, spark) == results(expected, spark)


@pytest.mark.slow
def test_tombstone_stands_where_its_key_stands_now(tmp_path: Path, spark: SparkSession) -> None:
    """It has no sequence of its own; the new file puts its key at a later one."""
    text = TEXT.format(sequence="    sequence: [lsn]\n").replace(
        'jsonl, path: "orders', 'debezium, path: "orders'
    )

    def begin(name: str, lsn: int) -> Pipeline:
        folder = declare(tmp_path / name, {"2024-01-01": {"customers": FIRST["customers"]}}).path.parent
        after = {"id": 1, "customer": "ada"}
        for day, place in (("2024-01-01", 1), ("2024-01-02", lsn)):
            event = {"op": "u", "after": after | {"amount": place}, "source": {"lsn": place}}
            write_lines(folder / "orders" / f"{day}.jsonl", [event])
        write_lines(folder / "orders" / "2024-01-03.jsonl", [{"key": {"id": 1}, "value": None}])
        return make_pipeline(folder, text)

    pipeline, expected = begin("replaced", 2), begin("expected", 5)
    for one in (pipeline, expected):
        run(one, spark)
    begin("replaced", 5)
    assert run(pipeline, spark, replace=DAY) == 1
    assert results(pipeline, spark) == results(expected, spark)


@pytest.mark.slow
def test_second_delivery_that_gives_a_key_its_state_reaches_the_joins(
    tmp_path: Path, spark: SparkSession
) -> None:
    """The new file has, of one key, what another file has already, in the place of a newer value."""
    first = {
        "orders": [order("c", 1, "ada", 10, rev=5), order("c", 2, "bob", 20, rev=5)],
        "customers": FIRST["customers"],
    }
    old = {"orders": [order("u", 1, "bob", 11, rev=6), order("d", 2, "bob", rev=6)]}
    new = {"orders": [order("u", 1, "ada", 10, rev=5), order("c", 2, "bob", 20, rev=5)]}
    replaced, expected = both(tmp_path, {"2024-01-01": first, str(DAY): new}, old, spark, sequence=True)
    assert results(replaced, spark) == results(expected, spark)


@pytest.mark.slow
def test_file_that_is_gone_is_refused_and_an_empty_one_takes_its_records_away(
    tmp_path: Path, spark: SparkSession
) -> None:
    """Its rows do not stay unasked; the error names it, and what is in its place then is all that counts."""
    pipeline = declare(tmp_path / "shop", {"2024-01-01": FIRST, str(DAY): OLD})
    run(pipeline, spark)
    declare(tmp_path / "shop", {str(DAY): {"orders": NEW["orders"]}})
    gone = tmp_path / "shop" / "customers" / f"{DAY}.jsonl"
    gone.unlink()

    for what in (DAY, gone.name):
        with pytest.raises(
            SourceNotFound, match=rf"table customers: {gone}: .*is gone.*file without records"
        ):
            run(pipeline, spark, replace=what)
    assert len(Journal(Lake(pipeline.lake)).plans) == 2
    gone.touch()
    assert run(pipeline, spark, replace=DAY) == 1

    empty = {"orders": NEW["orders"], "customers": []}
    expected = declare(tmp_path / "expected", {"2024-01-01": FIRST, str(DAY): empty})
    run(expected, spark)
    assert results(pipeline, spark) == results(expected, spark)
    gone.unlink()  # it has no records that could stay
    with pytest.raises(WrongUsage, match="no file of that day"):
        run(pipeline, spark, replace=DAY)


@pytest.mark.slow
def test_file_that_merely_grew_is_left_to_the_ordinary_batch(tmp_path: Path, spark: SparkSession) -> None:
    """A stream takes what is behind its records as new ones; the other files of the day are replaced."""
    folder = tmp_path / "shop"
    first, second, other = (
        {"op": "c", "id": i, "customer": "ada", "at": f"{DAY}T00:00:00Z"} for i in (1, 2, 3)
    )
    pipeline = declare(folder, {str(DAY): {**FIRST, "clicks": [first]}})
    path, clicks = pipeline.path, folder / "clicks" / f"{DAY}.jsonl"
    path.write_text(path.read_text().replace("joins:\n", STREAM))
    run(load(path), spark)
    write_lines(clicks, [first, second])
    with pytest.raises(WrongUsage, match=r"no file of that day .* new lines need no --replace"):
        run(load(path), spark, replace=DAY)
    write_lines(folder / "orders" / f"{DAY}.jsonl", NEW["orders"])

    assert run(load(path), spark, replace=DAY) == 2

    replaced, ordinary = Journal(Lake(pipeline.lake)).published[1:]
    assert (replaced.kind, ordinary.kind) == ("replace", "batch")
    assert not replaced.tables["clicks"].get("records")
    assert ordinary.tables["clicks"]["records"] == 1
    write_lines(clicks, [other])
    with pytest.raises(WrongUsage, match="clicks is a stream"):
        run(load(path), spark, replace=DAY)
    clicks.unlink()  # as after a while it may be: its records stay in any case
    write_lines(folder / "orders" / f"{DAY}.jsonl", OLD["orders"])
    assert run(load(path), spark, replace=DAY) == 1


def test_file_of_the_same_size_and_time_is_replaced_for_its_content(
    tmp_path: Path, spark: SparkSession
) -> None:
    """As a copy that keeps times may be; what it had is not taken for what it has."""
    pipeline = declare(tmp_path / "shop", {str(DAY): FIRST})
    run(pipeline, spark)
    file = tmp_path / "shop" / "customers" / f"{DAY}.jsonl"
    before = file.stat()
    file.write_text(file.read_text().replace("Paris", "Lyons"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)

    assert run(pipeline, spark, replace=DAY) == 1

    assert any("Lyons" in row for row in results(pipeline, spark)["inner"])
