"""A table that missed changes is compared with a snapshot of its source, and made equal to it."""

from collections.abc import Sequence
from pathlib import Path
from unittest.mock import Mock, patch

import pytest
from pyspark.sql import SparkSession

from faults.shop import joins, make_pipeline, run, write_lines
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.config.problems import ConfigurationError
from lakejoin.orchestration.errors import WrongUsage
from lakejoin.orchestration.planning.input_checks import TooManyDeleted
from lakejoin.orchestration.runs.reconcile import BadSnapshot, Differences, _placed, reconcile
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.lake.plan import Published
from lakejoin.storage.sources.planned.planned_file import PlannedFile

FILE = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {{format: jsonl, path: "orders.jsonl"}}
    columns: {{id: bigint, customer: bigint}}
    key: [id]
  customers:
    source: {{format: {form}}}
    columns: {{id: bigint, city: string{more}}}
    key: [id]
    {order}
    reconcile: {{format: csv, path: "dumps/*.csv", max_deleted: 100 %}}
joins:
  located: {{left: orders, right: customers, foreign_key: [customer], how: left, prefix: c_}}
"""
BY_LSN = ('debezium, path: "in/*"', "", "sequence: [lsn]")
BY_PLACE = ('jsonl, path: "in/*"', "", "")


def shop(folder: Path, form: str, more: str, order: str) -> Pipeline:
    """A pipeline with four orders, of customers 1 to 4."""
    write_lines(folder / "orders.jsonl", [{"op": "c", "id": key, "customer": key} for key in range(1, 5)])
    return make_pipeline(folder, FILE.format(form=form, more=more, order=order))


def event(op: str, key: int, city: str | None, lsn: int) -> dict[str, object]:
    """A change as Debezium writes it."""
    row = {"id": key, "city": city}
    side = {"before": row, "after": None} if op == "d" else {"after": row}
    return {"op": op, "source": {"lsn": lsn}, **side}


def dump(folder: Path, name: str, rows: Sequence[str]) -> None:
    """A snapshot of the customers."""
    (folder / "dumps").mkdir(exist_ok=True)
    (folder / "dumps" / name).write_text("".join(f"{row}\n" for row in ("id,city", *rows)))


def compare(pipeline: Pipeline, spark: SparkSession, **options: object) -> Differences:
    """In what the customers differ from the last snapshot."""
    [found] = reconcile(pipeline, lambda: spark, "customers", **options)
    assert isinstance(found, Differences)
    return found


def cities(pipeline: Pipeline, spark: SparkSession) -> list[str]:
    """The city of each order's customer."""
    return [text.partition('"c_city":')[2].rstrip("}") for text in joins(pipeline, spark)["located"]]


@pytest.mark.spark
def test_a_table_becomes_what_its_snapshot_is(tmp_path: Path, spark: SparkSession) -> None:
    """Missing, other and superfluous rows; what changed after the snapshot stays, and later ones go on from there."""
    pipeline = shop(tmp_path, *BY_LSN)
    events = [
        event("c", 1, "Oslo", 10),
        event("c", 2, "Rome", 20),
        event("c", 3, "Bonn", 30),
        event("c", 5, "Kiel", 40),
    ]
    write_lines(tmp_path / "in" / "1", events)
    run(pipeline, spark)
    dump(tmp_path, "1.csv", ["1,Nice"])
    dump(tmp_path, "2.csv", ["1,Oslo", "2,Lyon", "4,Cork", "5,Kiel"])
    found = compare(pipeline, spark)
    assert (found.missing, found.different, found.gone, found.at) == (1, 1, 1, '{"lsn":40}')
    first, *keys = str(found).splitlines()
    assert first.startswith(
        'customers and 2.csv (4 rows, as of {"lsn":40}) differ in 3 keys: 1 missing, 1 different'
    )
    assert keys == [
        '  {"id":2}: missing, or another row', '  {"id":3}: not in the snapshot', '  {"id":4}: missing, or another row',
    ]  # fmt: skip
    # 2 changed after the snapshot, and 3 after what came with it
    assert compare(pipeline, spark, at='{"lsn": 19}').count == 1
    assert len(Journal(Lake(pipeline.lake)).plans) == 1
    _, done = reconcile(pipeline, lambda: spark, "customers", mend=True)
    assert isinstance(done, Published)
    assert (done.kind, done.tables["customers"]["unchanged"], done.rows["customers"]) == ("reconcile", 2, 4)
    assert cities(pipeline, spark) == ['"Oslo"', '"Lyon"', "null", '"Cork"']
    assert str(compare(pipeline, spark)).endswith("are equal")
    assert [*reconcile(pipeline, lambda: spark, "customers", mend=True)][1:] == []
    # a change from before the snapshot is late, one from after it counts
    write_lines(tmp_path / "in" / "2", [event("u", 2, "Rome", 35), event("c", 3, "Bern", 41)])
    assert run(pipeline, spark) == 1
    assert cities(pipeline, spark) == ['"Oslo"', '"Lyon"', '"Bern"', '"Cork"']


@pytest.mark.spark
@pytest.mark.slow
def test_a_mending_that_was_cut_off_goes_on(tmp_path: Path, spark: SparkSession) -> None:
    """Where rows are ordered by their place, the snapshot is as new as the last one; lines behind it are newer."""
    pipeline = shop(tmp_path, *BY_PLACE)
    write_lines(tmp_path / "in" / "1", [{"op": "c", "id": key, "city": "Oslo"} for key in (1, 2, 3)])
    run(pipeline, spark)
    dump(tmp_path, "1.csv", ["1,Oslo", "3,Rome", "4,Cork"])
    with (
        patch("lakejoin.orchestration.batch.run_batch.Batch.append", side_effect=RuntimeError("killed")),
        pytest.raises(RuntimeError, match="killed"),
    ):
        list(reconcile(pipeline, lambda: spark, "customers", mend=True))
    with pytest.raises(WrongUsage, match="batch 2 is under way"):
        compare(pipeline, spark)
    assert run(pipeline, spark) == 1
    assert cities(pipeline, spark) == ['"Oslo"', "null", '"Rome"', '"Cork"']
    with (tmp_path / "in" / "1").open("a") as lines:
        lines.write('{"op": "u", "id": 3, "city": "Kiel"}\n{"op": "c", "id": 2, "city": "Bonn"}\n')
    assert run(pipeline, spark) == 1
    assert cities(pipeline, spark) == ['"Oslo"', '"Bonn"', '"Kiel"', '"Cork"']


@pytest.mark.spark
def test_what_cannot_be_compared_is_refused(tmp_path: Path, spark: SparkSession) -> None:
    """A snapshot with bad records or a key twice, one that lacks too much, none, a sequence that is none."""
    pipeline = shop(tmp_path, *BY_LSN)
    write_lines(tmp_path / "in" / "1", [event("c", key, "Oslo", key) for key in range(1, 5)])
    dump(tmp_path, "1.csv", ["1,Oslo"])
    with pytest.raises(WrongUsage, match="customers has no rows yet"):
        compare(pipeline, spark)
    run(pipeline, spark)
    with pytest.raises(WrongUsage, match=r"is no sequence of customers; expected \{\"lsn\": \"…\"\}"):
        compare(pipeline, spark, at="26523")
    careful = make_pipeline(tmp_path, pipeline.path.read_text().replace("100 %", "50 %"))
    with pytest.raises(TooManyDeleted, match="lacks 3 of 4 rows"):
        list(reconcile(careful, lambda: spark, "customers", mend=True))
    dump(tmp_path, "2.csv", ["one,Oslo"])
    with pytest.raises(BadSnapshot, match=r"2.csv: 1 records cannot be read \(the first: type_mismatch\)"):
        compare(pipeline, spark)
    dump(tmp_path, "2.csv", ["1,Oslo", "1,Rome"])
    with pytest.raises(BadSnapshot, match=r'has the key \{"id":1\} twice'):
        compare(pipeline, spark)
    with pytest.raises(WrongUsage, match="orders has no snapshots to be compared with"):
        list(reconcile(pipeline, lambda: spark, "orders"))


def test_snapshots_of_no_rows_are_refused(tmp_path: Path) -> None:
    """When the configuration is read."""
    text = FILE.format(form='csv, path: "in/*"', more="", order="")
    for change, message in (
        (("format: csv, path: \"dumps", "format: debezium, path: \"dumps"), "records of format 'debezium' are changes"),
        (('path: "dumps', 'op: dms, path: "dumps'), "the rows of a snapshot are there"),
        (('path: "in/*"', 'path: "in/*", mode: snapshot'), "its source is snapshots already"),
    ):  # fmt: skip
        with pytest.raises(ConfigurationError, match=message):
            make_pipeline(tmp_path, text.replace(*change))


def test_partitions_without_a_sequence_are_refused(tmp_path: Path) -> None:
    """Nothing says which of their changes are newer than a snapshot: the offset of one is no place among another's."""
    source = 'kafka, bootstrap_servers: "127.0.0.1:9092", topic: customers, value: jsonl'
    table = make_pipeline(tmp_path, FILE.format(form=source, more="", order="")).tables["customers"]
    parts = [
        PlannedFile("customers", "kafka://x", f"customers+{n}", None, 0, 0, "", 5, True, 0, 5) for n in (0, 1)
    ]
    journal = Mock(known_files=lambda name: {part.name: part for part in parts})
    with pytest.raises(WrongUsage, match="customers is read from 2 partitions, and no sequence says"):
        _placed(Mock(), table, journal, Mock(has_rows=lambda name: True), None)
