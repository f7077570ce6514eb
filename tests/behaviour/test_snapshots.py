"""Files that each are a whole table: what changed between them is found, and nothing else is taken for a change."""

import random
from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from faults.shop import joins, make_pipeline, run, write_lines
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.config.problems import ConfigurationError
from lakejoin.orchestration.errors import WrongUsage
from lakejoin.orchestration.planning.input_checks import TooManyBadRecords, TooManyDeleted
from lakejoin.storage.errors import SourceChanged, SourceRefused
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import QUARANTINE, Lake, changes_of

FILE = """\
name: shop
lake: ./lake
tables:
  customers:
    source: {{format: csv, path: "{path}", mode: snapshot{more}}}
    columns: {{id: bigint, city: string, size: int}}
    key: [id]{beside}
"""
BOTH = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {{format: jsonl, path: "orders/{{date}}.jsonl"{mode}}}
    columns: {{id: bigint, customer: bigint, amount: int}}
    key: [id]
  customers:
    source: {{format: jsonl, path: "customers/{{date}}.jsonl"{mode}}}
    columns: {{id: bigint, city: string}}
    key: [id]
joins:
  inner: {{left: orders, right: customers, foreign_key: [customer], how: inner}}
  left: {{left: orders, right: customers, foreign_key: [customer], how: left}}
"""
CITIES = ("Oslo", "Rome", "Bonn", "Cork")
Row = tuple[object, ...]
Table = dict[int, dict[str, object]]


def dump(folder: Path, name: str, rows: Mapping[object, Row]) -> None:
    """A file with these rows, by their keys."""
    path = folder / "in" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [",".join(map(str, (key, *row))) for key, row in rows.items()]
    path.write_text("".join(f"{line}\n" for line in ["id,city,size", *lines]))


def shop(folder: Path, path: str = "in/{date}.csv", more: str = "", beside: str = "") -> Pipeline:
    """A pipeline with one table of snapshots."""
    return make_pipeline(folder, FILE.format(path=path, more=more, beside=beside))


def changes(pipeline: Pipeline, spark: SparkSession) -> list[Row]:
    """What is logged: batch, key, what was done, city."""
    log = spark.read.format("delta").load(Lake(pipeline.lake).path(changes_of("customers")))
    rows = log.orderBy("_lj_batch", "id", "_lj_position").collect()
    return [(row["_lj_batch"], row["id"], row["_lj_op"], row["city"]) for row in rows]


def counts(pipeline: Pipeline, *names: str) -> list[Row]:
    """These counts of each batch."""
    published = Journal(Lake(pipeline.lake)).published
    return [tuple(batch.tables["customers"].get(name, 0) for name in names) for batch in published]


@pytest.mark.spark
def test_only_what_differs_from_the_rows_is_a_change(tmp_path: Path, spark: SparkSession) -> None:
    """New and changed rows are upserts, rows that are gone deletes, the same rows nothing, a returned one an upsert."""
    dump(tmp_path, "2024-01-01.csv", {1: ("Oslo", 1), 2: ("Rome", 2), 3: ("Bonn", 3)})
    dump(tmp_path, "2024-01-02.csv", {3: ("Bonn", 3), 1: ("Cork", 1), 4: ("Oslo", 4)})
    dump(tmp_path, "2024-01-03.csv", {1: ("Cork", 1), 2: ("Rome", 2), 3: ("Bonn", 3), 4: ("Oslo", 4)})
    dump(tmp_path, "2024-01-04.csv", {1: ("Cork", 1), 2: ("Rome", 2), 3: ("Bonn", 3), 4: ("Oslo", 4)})
    pipeline = shop(tmp_path)
    assert run(pipeline, spark, batch_by="all") == 4
    assert changes(pipeline, spark) == [
        (1, 1, "upsert", "Oslo"), (1, 2, "upsert", "Rome"), (1, 3, "upsert", "Bonn"),
        (2, 1, "upsert", "Cork"), (2, 2, "delete", None), (2, 4, "upsert", "Oslo"),
        (3, 2, "upsert", "Rome"),
    ]  # fmt: skip
    found = counts(pipeline, "records", "unchanged", "inserted", "removed")
    assert found == [(3, 0, 3, 0), (3, 1, 1, 1), (4, 3, 1, 0), (4, 4, 0, 0)]
    assert run(pipeline, spark) == 0


@pytest.mark.spark
def test_bad_rows_never_look_like_deleted_ones(tmp_path: Path, spark: SparkSession) -> None:
    """A bad row whose key is known leaves its row as it was; where a key is not, nothing is deleted."""
    dump(tmp_path, "1/a.csv", {1: ("Oslo", 1), 2: ("Rome", 2), 3: ("Bonn", 3)})
    dump(tmp_path, "1/b.csv", {4: ("Cork", 4)})
    dump(tmp_path, "2/a.csv", {1: ("Oslo", "many"), 3: ("Bonn", 3)})
    dump(tmp_path, "2/b.csv", {"": ("Cork", 4)})
    dump(tmp_path, "3/a.csv", {1: ("Oslo", "many"), 3: ("Bonn", 3), 5: ("Rome", 5)})
    # a key that stands twice: the last row counts, be it the one that is stored
    dump(tmp_path, "4/a.csv", {1: ("Oslo", 1), "3": ("Cork", 3), 3: ("Bonn", 3), 5: ("Rome", 5)})
    pipeline = shop(tmp_path, "in/*/*.csv")
    assert run(pipeline, spark) == 4
    assert changes(pipeline, spark) == [
        (1, 1, "upsert", "Oslo"), (1, 2, "upsert", "Rome"), (1, 3, "upsert", "Bonn"), (1, 4, "upsert", "Cork"),
        (3, 2, "delete", None), (3, 4, "delete", None), (3, 5, "upsert", "Rome"),
        (4, 3, "upsert", "Cork"), (4, 3, "upsert", "Bonn"),
    ]  # fmt: skip
    found = counts(pipeline, "records", "unchanged", "quarantined", "removed", "withheld")
    assert found == [(4, 0, 0, 0, 0), (3, 1, 2, 0, 2), (3, 1, 1, 2, 0), (4, 2, 0, 0, 0)]
    bad = spark.read.format("delta").load(Lake(pipeline.lake).path(QUARANTINE)).orderBy("_lj_batch", "reason")
    assert [(row["_lj_batch"], row["reason"]) for row in bad.collect()] == [
        (2, "null_key"), (2, "type_mismatch"), (3, "type_mismatch"),
    ]  # fmt: skip


@pytest.mark.spark
def test_a_snapshot_that_lacks_too_much_is_refused_before_its_plan(
    tmp_path: Path, spark: SparkSession
) -> None:
    """One that was cut off, an empty one, and one with too many bad rows among all of its rows."""
    dump(tmp_path, "2024-01-01.csv", {key: ("Oslo", key) for key in range(10)})
    pipeline = shop(tmp_path, more=", max_deleted: 20 %", beside="\n    max_bad_ratio: 0.1")
    assert run(pipeline, spark) == 1
    dump(tmp_path, "2024-01-02.csv", {key: ("Oslo", key) for key in range(7)})
    with pytest.raises(
        TooManyDeleted, match=r"2024-01-02.csv lacks 3 of 10 rows \(30.0%\). Expected at most 20.0%"
    ):
        run(pipeline, spark)
    dump(tmp_path, "2024-01-02.csv", {})
    with pytest.raises(TooManyDeleted, match="lacks 10 of 10 rows"):
        run(pipeline, spark)
    dump(tmp_path, "2024-01-02.csv", {key: ("Oslo", "x" if key < 2 else key) for key in range(10)})
    with pytest.raises(TooManyBadRecords, match=r"2 of 10 new records \(20.0%\)"):
        run(pipeline, spark)
    assert len(Journal(Lake(pipeline.lake)).plans) == 1
    dump(tmp_path, "2024-01-02.csv", {key: ("Oslo", key) for key in range(2, 10)})
    assert run(pipeline, spark) == 1
    assert counts(pipeline, "removed", "unchanged")[1:] == [(2, 8)]
    dump(tmp_path, "2024-01-03.csv", {})
    everything = shop(tmp_path, more=", max_deleted: 1", beside="\n    max_bad_ratio: 0.1")
    assert run(everything, spark) == 1
    assert counts(everything, "removed")[2:] == [(8,)]


@pytest.mark.spark
def test_what_is_no_new_whole_snapshot_is_refused(tmp_path: Path, spark: SparkSession) -> None:
    """Files of a day that was read, lines behind it, days before it, a folder of files; nothing is exported again."""
    dump(tmp_path, "2024-01-02/a.csv", {1: ("Oslo", 1)})
    pipeline = shop(tmp_path, "in/{date}/*.csv")
    assert run(pipeline, spark) == 1
    dump(tmp_path, "2024-01-02/b.csv", {2: ("Oslo", 2)})
    with pytest.raises(SourceChanged, match="belongs to the snapshot 2024-01-02, which was read without it"):
        run(pipeline, spark)
    (tmp_path / "in/2024-01-02/b.csv").unlink()
    dump(tmp_path, "2024-01-02/a.csv", {1: ("Oslo", 1), 2: ("Rome", 2)})
    with pytest.raises(SourceChanged, match="which was read without its lines behind 1"):
        run(pipeline, spark)
    dump(tmp_path, "2024-01-02/a.csv", {1: ("Oslo", 1)})
    dump(tmp_path, "2024-01-01/a.csv", {3: ("Oslo", 3)})
    with pytest.raises(
        SourceChanged, match=r"the snapshot 2024-01-01 is older, by its day and name, than 2024-01-02"
    ):
        run(pipeline, spark)
    folder = shop(tmp_path / "folder", str(tmp_path / "in"))
    with pytest.raises(SourceRefused, match="nothing says whether they are one snapshot or many"):
        run(folder, spark)
    dump(tmp_path, "2024-01-02/a.csv", {1: ("Rome", 1)})
    (tmp_path / "in/2024-01-01/a.csv").unlink()
    with pytest.raises(WrongUsage, match="customers is made of snapshots"):
        run(pipeline, spark, replace="2024-01-02/a.csv")


@pytest.mark.spark
def test_the_newest_version_of_a_delta_table_is_a_snapshot_without_a_feed(
    tmp_path: Path, spark: SparkSession
) -> None:
    """Written anew as a whole, or changed; of several new versions only the last is read."""
    pipeline = shop(tmp_path, "source")
    pipeline = make_pipeline(tmp_path, pipeline.path.read_text().replace("csv", "delta"))
    source = str(tmp_path / "source")

    def write(rows: list[Row]) -> None:
        frame = spark.createDataFrame(rows, "id bigint, city string, size int").coalesce(1)
        frame.write.format("delta").mode("overwrite").save(source)

    write([(1, "Oslo", 1), (2, "Rome", 2), (3, "Bonn", 3)])
    assert run(pipeline, spark) == 1
    assert run(pipeline, spark) == 0
    write([(1, "Kiel", 1)])
    write([(1, "Oslo", 1), (3, "Cork", 3), (4, "Rome", 4)])
    assert run(pipeline, spark, batch_rows=1) == 1
    assert changes(pipeline, spark)[3:] == [
        (2, 2, "delete", None), (2, 3, "upsert", "Cork"), (2, 4, "upsert", "Rome"),
    ]  # fmt: skip
    assert counts(pipeline, "records", "unchanged", "removed")[1:] == [(3, 1, 1)]


def days(seed: int, count: int) -> tuple[list[Table], list[Table]]:
    """Rows of orders and of customers at the end of some days, each day a few changes on from the one before."""
    rng = random.Random(seed)
    orders: list[Table] = [{}]
    customers: list[Table] = [{}]
    for _ in range(count):
        now, who = dict(orders[-1]), dict(customers[-1])
        for key in rng.sample(range(12), 5):
            if rng.random() < 0.3:
                now.pop(key, None)
            else:
                now[key] = {"id": key, "customer": rng.choice([*range(5), None]), "amount": rng.randrange(3)}
        for key in rng.sample(range(5), 2):
            if rng.random() < 0.3:
                who.pop(key, None)
            else:
                who[key] = {"id": key, "city": rng.choice(CITIES)}
        orders.append(now)
        customers.append(who)
    return orders, customers


def changed(before: Table, after: Table) -> list[object]:
    """The same day as change data."""
    upserts = [{"op": "u", **row} for key, row in after.items() if before.get(key) != row]
    return [*upserts, *[{"op": "d", "id": key} for key in before if key not in after]]


@pytest.mark.spark
@pytest.mark.parametrize("count", [2, pytest.param(30, marks=pytest.mark.slow)])
def test_daily_dumps_give_the_joins_that_their_changes_give(
    tmp_path: Path, spark: SparkSession, count: int
) -> None:
    """After each day, of tables that lose and regain rows, in a pipeline of snapshots and in one of changes."""
    ours = make_pipeline(tmp_path / "ours", BOTH.format(mode=", mode: snapshot, max_deleted: 100 %"))
    theirs = make_pipeline(tmp_path / "theirs", BOTH.format(mode=""))
    for name, states in zip(("orders", "customers"), days(7, count), strict=True):
        for day in range(1, count + 1):
            file = f"{name}/2024-01-{day:02}.jsonl"
            write_lines(tmp_path / "ours" / file, states[day].values())
            write_lines(tmp_path / "theirs" / file, changed(states[day - 1], states[day]))
    for day in range(count):
        assert run(ours, spark, batches=1) == run(theirs, spark, batches=1) == 1
        assert joins(ours, spark) == joins(theirs, spark), f"day {day + 1}"


@pytest.mark.parametrize(
    ("more", "beside", "message"),
    [
        (", op: dms", "", "the rows of a snapshot are there, and say no more; remove it"),
        ("", "\n    sequence: [size]", "snapshots are ordered by their days and names"),
        (", max_deleted: 12", "", "expected a share from 0 % to 100 %, as '10 %' or 0.1"),
        ("", "\n    versioned: {history_retention: 1 day}", "does not say when a row changed or was deleted"),
    ],
)
def test_what_a_snapshot_does_not_say_is_refused(
    tmp_path: Path, more: str, beside: str, message: str
) -> None:
    """When the configuration is read."""
    with pytest.raises(ConfigurationError, match=message):
        shop(tmp_path, more=more, beside=beside)


def test_a_mode_that_a_source_has_not_is_refused(tmp_path: Path) -> None:
    """Events are changes; and a limit of deletes is for those that are found by comparison."""
    text = FILE.format(path="in/*", more="", beside="")
    with pytest.raises(ConfigurationError, match="records of format 'debezium' are changes"):
        make_pipeline(tmp_path, text.replace("format: csv", "format: debezium"))
    with pytest.raises(ConfigurationError, match="max_deleted: needs `mode: snapshot`"):
        make_pipeline(tmp_path, text.replace("mode: snapshot", "max_deleted: 1"))
