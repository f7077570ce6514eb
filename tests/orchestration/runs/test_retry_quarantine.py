"""Records in quarantine are listed, and read once more where they can be accepted now."""

from collections import Counter
from collections.abc import Iterable
from datetime import date
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from faults.shop import joins, make_pipeline, run, texts, write_lines
from lakejoin.orchestration.cli import app, options
from lakejoin.orchestration.config import Pipeline, load
from lakejoin.orchestration.lake_state.published_snapshot import published_snapshot
from lakejoin.orchestration.lake_state.quarantine_counts import open_counts
from lakejoin.orchestration.runs.migrate import migrate
from lakejoin.orchestration.runs.retry_quarantine import in_quarantine, known, retry
from lakejoin.storage.errors import SourceChanged
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake, joined_of
from lakejoin.storage.state.pinned_state import State
from lakejoin.transforms.model.schemas import SEQUENCE, named

pytestmark = pytest.mark.spark

TEXT = """\
name: weather
lake: ./lake
tables:
  stations:
    source: {{format: jsonl, path: "stations/{{date}}.jsonl"}}
    columns: {{station: string, city: string, at: timestamp}}
    key: [station]
    event_time: at
    versioned: {{history_retention: 400 days}}
    max_future: {ahead}
  readings:
    source: {{format: jsonl, path: "readings/{{date}}.jsonl"}}
    columns: {{id: bigint, station: string}}
    key: [id]
joins:
  placed: {{left: readings, right: stations, foreign_key: [station], how: left}}
"""


MORE = "  more: {left: readings, right: stations, foreign_key: [station], how: inner}\n"


def declare(folder: Path, *, ahead: str, more: str = "") -> Pipeline:
    """Write the pipeline with a limit of how far ahead a time may be, and perhaps another join."""
    return make_pipeline(folder, TEXT.format(ahead=ahead) + more)


def write(folder: Path, table: str, day: str, lines: Iterable[object]) -> None:
    """Write the records of a day; a text is a line as it is."""
    write_lines(folder / table / f"{day}.jsonl", lines)


def cities(pipeline: Pipeline, spark: SparkSession, join: str = "placed") -> dict[int, str | None]:
    """What a join says of each reading."""
    rows = spark.read.format("delta").load(Lake(pipeline.lake).path(joined_of(join)))
    return {row["id"]: row["right_city"] for row in rows.collect()}


def places(pipeline: Pipeline, spark: SparkSession) -> list[tuple[str, int, str]]:
    """What is in quarantine: table, line, reason; `status` counts the same."""
    rows = in_quarantine(pipeline, spark, known(pipeline, ())).collect()
    counts = Counter((row["table"], row["reason"]) for row in rows)
    lake = Lake(pipeline.lake)
    told = open_counts(lake, Journal(lake))
    assert {(table, reason): n for table, reasons in told.items() for reason, n in reasons.items()} == counts
    return [(row["table"], row["line"], row["reason"]) for row in rows]


@pytest.fixture
def shop(tmp_path: Path, spark: SparkSession) -> Pipeline:
    """Two stations of which one is ahead of its time, readings of which one is broken; and a later day."""
    folder = tmp_path / "shop"
    station = {"op": "c", "city": "Paris", "at": "2024-01-01T00:00:00Z"}
    write(folder, "stations", "2024-01-01", [
        {**station, "station": "p"},
        {**station, "station": "r", "city": "Rome", "at": "2024-01-09T00:00:00Z"},
        {**station, "station": "o", "city": "Oslo", "at": "2024-01-10T12:00:00Z"},
    ])  # fmt: skip
    write(folder, "readings", "2024-01-01", [
        {"op": "c", "id": 1, "station": "p"}, {"op": "c", "id": 2, "station": "r"}, '{"op": "c", "id": 3, "stat',
        {"op": "c", "id": 4, "station": "o"},
    ])  # fmt: skip
    write(
        folder,
        "stations",
        "2024-01-02",
        [{**station, "station": "o", "city": "Bergen", "at": "2024-01-03T00:00:00Z"}],
    )
    pipeline = declare(folder, ahead="1 day")
    run(pipeline, spark)
    return pipeline


def test_records_that_can_be_accepted_now_leave_quarantine(shop: Pipeline, spark: SparkSession) -> None:
    """They are held against what came since, the joins follow, and what is still wrong stays.

    The folder may have moved meanwhile; a join that was added begins with the next run.
    """
    found = [("readings", 3, "parse_error"), *[("stations", line, "in_the_future") for line in (2, 3)]]
    assert places(shop, spark) == found
    assert cities(shop, spark) == {1: "Paris", 2: None, 4: "Bergen"}
    moved = shop.path.parent.rename(shop.path.parent.with_name("moved"))
    pipeline = declare(moved, ahead="8 days", more=MORE)

    (batch,) = retry(pipeline, lambda: spark, known(pipeline, ()))

    assert batch.kind == "retry"
    assert {name: count for name, count in batch.tables["readings"].items() if count} == {
        "records": 1,
        "quarantined": 1,
    }
    assert cities(pipeline, spark) == {1: "Paris", 2: "Rome", 4: "Bergen"}
    assert places(pipeline, spark) == [("readings", 3, "parse_error"), ("stations", 3, "in_the_future")]
    assert run(pipeline, spark) == 1
    assert cities(pipeline, spark, "more") == cities(pipeline, spark)


@pytest.mark.slow
def test_line_that_was_healed_can_be_bad_again(tmp_path: Path, spark: SparkSession) -> None:
    """The file is exported once more, with another mistake on that line; the next retry is of what it has now."""
    bad, folder = '{"op": "c", "id": 2, "stat', tmp_path / "shop"
    first, path = {"op": "c", "id": 1, "station": "p"}, '"readings/{date}.jsonl"'
    write(folder, "stations", "2024-01-01", [])
    write(folder, "readings", "2024-01-01", [first, {"op": "c", "id": 2, "station": "p" * 80}])
    pipeline = declare(folder, ahead="1 day")
    limited = pipeline.path.read_text().replace(path, f"{path}, limits: {{line: 80 bytes}}")
    pipeline.path.write_text(limited)
    pipeline = load(pipeline.path)
    run(pipeline, spark)
    assert places(pipeline, spark) == [("readings", 2, "too_large")]
    pipeline = declare(folder, ahead="1 day")
    list(retry(pipeline, lambda: spark, ["readings"]))
    assert places(pipeline, spark) == []
    write(folder, "readings", "2024-01-01", [first, bad])
    run(pipeline, spark, replace=date(2024, 1, 1))
    assert places(pipeline, spark) == [("readings", 2, "parse_error")]


def test_record_of_which_only_a_half_can_be_read_stays(tmp_path: Path, spark: SparkSession) -> None:
    """Its key changes: the old one's delete is logged, and what became of the new one is not known, again and again."""
    (tmp_path / "lakejoin.yaml").write_text(
        "name: parts\nlake: ./lake\ntables:\n  parts:\n    source: {format: debezium, path: parts}\n"
        "    columns: {id: bigint, note: string}\n    key: [id]\n    sequence: [lsn]\n"
    )
    row = {"id": 1, "note": "long"}
    moved = {"id": 2, "note": "__debezium_unavailable_value"}
    write_lines(tmp_path / "parts" / "1.jsonl", [
        {"key": {"id": 1}, "value": {"op": "c", "before": None, "after": row, "source": {"lsn": 1}}},
        {"key": {"id": 2}, "value": {"op": "u", "before": row, "after": moved, "source": {"lsn": 2}}},
    ])  # fmt: skip
    pipeline = load(tmp_path / "lakejoin.yaml")
    run(pipeline, spark)
    waiting = [("parts", 2, "unavailable_value")]
    assert places(pipeline, spark) == waiting
    for _ in range(2):
        (batch,) = retry(pipeline, lambda: spark, ["parts"])
        assert batch.tables["parts"]["quarantined"] == 1
        assert places(pipeline, spark) == waiting


def test_every_bad_row_of_a_delta_table_is_listed(tmp_path: Path, spark: SparkSession) -> None:
    """Rows of one commit have the same line, each among those of its key."""
    (tmp_path / "lakejoin.yaml").write_text(
        "name: stock\nlake: ./lake\ntables:\n  stock:\n    source: {format: delta, path: stock}\n"
        "    columns: {id: bigint, amount: int}\n    key: [id]\n"
    )
    rows = spark.range(4).selectExpr("id", "if(id = 0, 1, 1L << 40) AS amount")
    rows.write.format("delta").option("delta.enableChangeDataFeed", "true").save(str(tmp_path / "stock"))
    pipeline = load(tmp_path / "lakejoin.yaml")
    run(pipeline, spark)
    assert [reason for _, _, reason in places(pipeline, spark)] == ["type_mismatch"] * 3


@pytest.mark.slow
def test_record_that_leaves_quarantine_counts_by_its_own_time(shop: Pipeline, spark: SparkSession) -> None:
    """It was delivered before another one, and is about a later time."""
    pipeline = declare(shop.path.parent, ahead="30 days")
    list(retry(pipeline, lambda: spark, ["stations"]))
    assert cities(pipeline, spark) == {1: "Paris", 2: "Rome", 4: "Oslo"}
    assert places(pipeline, spark) == [("readings", 3, "parse_error")]


NARROW = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {format: jsonl, path: "orders/{date}.jsonl"}
    columns: {id: bigint, customer: int, amount: int, rev: int}
    key: [id]
    sequence: [rev]
  customers:
    source: {format: jsonl, path: "customers/{date}.jsonl"}
    columns: {customer: int, city: string}
    key: [customer]
joins:
  left: {left: orders, right: customers, foreign_key: [customer], how: left}
  inner: {left: orders, right: customers, foreign_key: [customer], how: inner}
  over: {left: inner, right: customers, foreign_key: [amount], how: left, prefix: over_}
"""
LARGE = 3_000_000_000


@pytest.mark.slow
def test_records_that_a_wider_type_has_room_for_are_read_at_their_own_sequence(
    tmp_path: Path, spark: SparkSession
) -> None:
    """Those of both sides of the joins; what has come since for their keys stands. Everything adds up."""

    def order(op: str, key: int, customer: int, amount: int, rev: int) -> dict[str, object]:
        return {"op": op, "id": key, "customer": customer, "amount": amount, "rev": rev}

    def declared(folder: str, types: str) -> Pipeline:
        days = (
            [order("c", 1, 1, 1, 1), order("c", 2, LARGE, LARGE, 1), order("c", 3, 1, LARGE, 1),
             order("c", 4, 2, LARGE, 1), order("c", 5, LARGE, 5, 1)],
            # 1 gets a value too large; newer ones of 3, 4 and 5 fit
            [order("u", 1, LARGE, 2, 2), order("u", 3, 2, 30, 2), order("d", 4, 2, 1, 2), order("u", 5, 2, 1, 2)],
        )  # fmt: skip
        for day, orders in enumerate(days, start=1):
            write(tmp_path / folder, "orders", f"2024-01-0{day}", orders)
        names = [(1, "Paris"), (2, "Rome"), (LARGE, "Oslo")]
        cities = [{"op": "c", "customer": number, "city": city} for number, city in names]
        write(tmp_path / folder, "customers", "2024-01-01", cities)
        file = tmp_path / folder / "lakejoin.yaml"
        file.write_text(
            NARROW.replace("customer: int", f"customer: {types}").replace("amount: int", f"amount: {types}")
        )
        return load(file)

    pipeline = declared("shop", "int")
    run(pipeline, spark)
    waiting = [("customers", 3), *[("orders", line) for line in (2, 3, 4, 5)], ("orders", 1)]
    assert places(pipeline, spark) == [(table, line, "type_mismatch") for table, line in waiting]
    pipeline = declared("shop", "bigint")
    list(migrate(pipeline, lambda: spark))

    (batch,) = retry(pipeline, lambda: spark, known(pipeline, ()))

    verdicts = ("applied", "out_of_order", "duplicate", "tombstone", "expired", "ignored", "quarantined")
    found = {
        name: {verdict: counts[verdict] for verdict in verdicts if counts[verdict]}
        for name, counts in batch.tables.items()
    }
    assert found == {"orders": {"applied": 2, "out_of_order": 3}, "customers": {"applied": 1}}
    assert {name: counts["records"] for name, counts in batch.tables.items()} == {"orders": 5, "customers": 1}
    for counts in batch.joins.values():
        assert counts["answers"] == counts["applied"] + counts["superseded"] + counts["stale"]
    assert places(pipeline, spark) == []
    wide = declared("wide", "bigint")
    run(wide, spark)
    assert joins(pipeline, spark) == joins(wide, spark)
    assert len(joins(pipeline, spark)["inner"]) == 4
    assert stored(pipeline, spark) == stored(wide, spark)
    assert run(pipeline, spark) == 0


def stored(pipeline: Pipeline, spark: SparkSession) -> dict[str, list[str]]:
    """Rows of tables as the next records are held against them, deleted keys included."""
    state = State(spark, Lake(pipeline.lake), published_snapshot(Journal(Lake(pipeline.lake))))
    return {
        name: texts(state.all_rows(table.spec).select(*map(named, [*table.columns, SEQUENCE])))
        for name, table in pipeline.tables.items()
    }


@pytest.mark.slow
def test_file_must_be_what_it_was(shop: Pipeline, spark: SparkSession) -> None:
    """Another content has other lines; the message says how it can be taken."""
    file = shop.path.parent / "readings" / "2024-01-01.jsonl"
    file.write_text(file.read_text().replace('"id": 3, "stat\n', '"id": 3, "station": "p"}\n'))
    with pytest.raises(SourceChanged, match="--replace 2024-01-01"):
        list(retry(shop, lambda: spark, ["readings"]))
    assert len(Journal(Lake(shop.lake)).plans) == 2
    assert run(shop, spark, replace=date(2024, 1, 1)) == 1
    assert [place for place in places(shop, spark) if place[0] == "readings"] == []
    assert cities(shop, spark)[3] == "Paris"


def test_commands_say_what_is_there(
    shop: Pipeline, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line a record with the reason; a name that is not declared is refused."""
    monkeypatch.setattr(options, "open_session", lambda pipeline, **_: spark)
    result = CliRunner().invoke(app, ["quarantine", "list", str(shop.path), "readings"])
    assert result.exit_code == 0, result.output
    assert "readings" in result.output
    assert "parse_error" in result.output
    assert "stations" not in result.output
    result = CliRunner().invoke(app, ["quarantine", "retry", str(shop.path), "reading"])
    assert result.exit_code == 2
    assert "no table or stream 'reading'; did you mean 'readings'?" in result.output
