"""A record for which an expression of the configuration raises goes to quarantine, and the batch goes on."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from faults.shop import make_pipeline, run, write_lines
from lakejoin.orchestration.checks.check_lake import check_lake
from lakejoin.orchestration.cli import app, options
from lakejoin.orchestration.runs.retry_quarantine import retry
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import QUARANTINE, Lake, joined_of

pytestmark = pytest.mark.spark

TEXT = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {{format: jsonl, path: "orders/{{date}}.jsonl"}}
    columns: {{id: bigint, customer: string, parts: "array<int>"}}
    key: [id]
  customers:
    source: {{format: jsonl, path: "customers/{{date}}.jsonl"}}
    columns: {{id: int, city: string}}
    key: [id]
joins:
  located: {{left: orders, right: customers, foreign_key: ["{key}"], how: left}}
  constant: {{left: orders, right: customers, foreign_key: ["1"], how: left}}
"""
CAST = "cast(customer as int)"
CITIES = [{"op": "c", "id": 1, "city": "Rome"}, {"op": "c", "id": 2, "city": "Oslo"}]


def _order(
    number: int, customer: str, operation: str = "c", parts: tuple[int, ...] = (1,)
) -> dict[str, object]:
    return {"op": operation, "id": number, "customer": customer, "parts": parts}


def _quarantine(lake: Lake, spark: SparkSession) -> list[tuple[str, int, str]]:
    rows = spark.read.format("delta").load(lake.path(QUARANTINE)).orderBy("_lj_batch", "line")
    return [(row["reason"], row["line"], row["detail"]) for row in rows.collect()]


def _cities(lake: Lake, spark: SparkSession, join: str = "located") -> dict[int, str | None]:
    rows = spark.read.format("delta").load(lake.path(joined_of(join)))
    return {row["id"]: row["right_city"] for row in rows.collect()}


def test_foreign_key_that_cannot_be_cast(tmp_path: Path, spark: SparkSession) -> None:
    """Its record is in quarantine with expression, value and Spark's reason; all others are joined."""
    write_lines(tmp_path / "customers" / "2024-01-01.jsonl", CITIES)
    orders = [_order(1, "1"), _order(2, "N/A"), _order(3, "2"), _order(1, "none", "u")]
    write_lines(tmp_path / "orders" / "2024-01-01.jsonl", orders)
    pipeline = make_pipeline(tmp_path, TEXT.format(key=CAST))
    run(pipeline, spark)
    lake = Lake(pipeline.lake)
    assert _cities(lake, spark) == {1: "Rome", 3: "Oslo"}
    assert _cities(lake, spark, "constant") == {1: "Rome", 3: "Rome"}
    (reason, line, detail), second = _quarantine(lake, spark)
    assert (reason, line) == ("expression_failed", 2)
    assert detail.startswith(f'foreign key of located: {CAST} cannot be computed from {{"customer":"N/A"}}: ')
    assert "[CAST_INVALID_INPUT] The value 'N/A'" in detail
    assert second[:2] == ("expression_failed", 4)
    assert Journal(lake).last.tables["orders"]["quarantined"] == 2


def test_record_is_healed_once_the_expression_is_mended(tmp_path: Path, spark: SparkSession) -> None:
    """A record that a later one of its key has overtaken meanwhile stays superseded."""
    write_lines(tmp_path / "customers" / "2024-01-01.jsonl", CITIES)
    write_lines(tmp_path / "orders" / "2024-01-01.jsonl", [_order(1, "no 1"), _order(2, "no 2")])
    run(make_pipeline(tmp_path, TEXT.format(key=CAST)), spark)
    write_lines(tmp_path / "orders" / "2024-01-02.jsonl", [_order(1, "2")])
    pipeline = make_pipeline(tmp_path, TEXT.format(key="cast(replace(customer, 'no ', '') as int)"))
    run(pipeline, spark, rebuild=["located"])
    lake = Lake(pipeline.lake)
    assert _cities(lake, spark) == {1: "Oslo"}
    list(retry(pipeline, lambda: spark, ["orders"]))
    assert _cities(lake, spark) == {1: "Oslo", 2: "Oslo"}
    assert Journal(lake).last.tables["orders"]["quarantined"] == 0


STREAM = """\
streams:
  clicks:
    source: {format: jsonl, path: "clicks/{date}.jsonl"}
    columns: {id: bigint, page: string, price: int, at: timestamp}
    key: [id]
    event_time: at
    where: "100 / price > 1"
joins:
  visits: {stream: clicks, table: customers, foreign_key: ["cast(split(page, '/')[1] as int)"], how: left}
"""


def test_where_and_key_of_a_stream_that_cannot_be_computed(tmp_path: Path, spark: SparkSession) -> None:
    """A division by zero, an index beyond the array and a bad number are each told by their record.

    What `where` leaves out is asked for no key.
    """
    write_lines(tmp_path / "customers" / "2024-01-01.jsonl", CITIES)
    clicks = [
        (1, "a/1", 10),
        (2, "a/2", 0),
        (3, "a", 10),
        (4, "a/x", 10),
        (5, "a", 1000),
        (6, None, 10),
        (7, "a/2", 1),
    ]
    records = [
        {"op": "c", "id": number, "page": page, "price": price, "at": f"2024-01-01T00:00:0{number}Z"}
        for number, page, price in clicks
    ]
    write_lines(tmp_path / "clicks" / "2024-01-01.jsonl", records)
    write_lines(tmp_path / "orders" / "2024-01-01.jsonl", [])
    tables = TEXT.format(key=CAST).replace("joins:", STREAM)
    pipeline = make_pipeline(tmp_path, tables)
    run(pipeline, spark)
    lake = Lake(pipeline.lake)
    assert _cities(lake, spark, "visits") == {1: "Rome", 6: None, 7: "Oslo"}
    told = {line: (reason, detail) for reason, line, detail in _quarantine(lake, spark)}
    assert {reason for reason, _ in told.values()} == {"expression_failed"}
    assert told[2][1].startswith(
        'where of clicks: 100 / price > 1 cannot be computed from {"price":0}: [DIVIDE_BY_ZERO]'
    )
    assert "[INVALID_ARRAY_INDEX]" in told[3][1]
    assert "[CAST_INVALID_INPUT] The value 'x'" in told[4][1]
    assert sorted(told) == [2, 3, 4]
    assert Journal(lake).last.tables["clicks"]["ignored"] == 1


def test_many_records_that_fail_are_told_with_few_jobs(tmp_path: Path, spark: SparkSession) -> None:
    """Spark is asked for the cause of the first ten inputs; the others have expression and value."""
    write_lines(tmp_path / "customers" / "2024-01-01.jsonl", CITIES)
    write_lines(tmp_path / "orders" / "2024-01-01.jsonl", [_order(n, f"no {n // 2}") for n in range(1000)])
    pipeline = make_pipeline(tmp_path, TEXT.format(key=CAST))
    run(pipeline, spark)
    told = [detail for _, _, detail in _quarantine(Lake(pipeline.lake), spark)]
    assert len(told) == 1000
    assert ["[CAST_INVALID_INPUT]" in detail for detail in told] == [True] * 20 + [False] * 980
    assert all(f'{{"customer":"no {n // 2}"}}' in detail for n, detail in enumerate(told))


def test_column_that_a_file_does_not_have_ends_no_batch(tmp_path: Path, spark: SparkSession) -> None:
    """It is null in every row, so Spark could compute the expression before it reads one; each record is told."""
    write_lines(tmp_path / "customers" / "2024-01-01.jsonl", CITIES)
    (tmp_path / "orders").mkdir()
    spark.range(2).selectExpr("id", "'c' AS op").coalesce(1).write.parquet(str(tmp_path / "written"))
    (written,) = (tmp_path / "written").glob("*.parquet")
    written.rename(tmp_path / "orders" / "2024-01-01.parquet")
    text = TEXT.replace(
        'format: jsonl, path: "orders/{{date}}.jsonl"', 'format: parquet, path: "orders/{{date}}.parquet"'
    )
    pipeline = make_pipeline(tmp_path, text.format(key="cast(1 / coalesce(char_length(customer), 0) as int)"))
    run(pipeline, spark)
    told = _quarantine(Lake(pipeline.lake), spark)
    assert [(reason, "[DIVIDE_BY_ZERO]" in detail) for reason, _, detail in told] == [
        ("expression_failed", True)
    ] * 2


LATER = """\
  over: {left: located, right: customers, foreign_key: ["cast(right_city as int)"], how: left, prefix: of_}
"""
VISITS = """\
  again: {stream: clicks, table: customers, foreign_key: ["cast(page as int)"], how: left}
"""


@pytest.mark.slow
def test_rows_that_no_batch_has_refused_are_counted_and_told(
    tmp_path: Path, spark: SparkSession, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a join that begins with rows, one over it, and a stream's: join, expression, how many, first keys, way.

    `status` has the counts.
    """
    write_lines(tmp_path / "customers" / "2024-01-01.jsonl", CITIES)
    write_lines(tmp_path / "orders" / "2024-01-01.jsonl", [_order(1, "1"), _order(2, "N/A"), _order(3, "?")])
    click = {"op": "c", "price": 10, "at": "2024-01-01T00:00:00Z"}
    write_lines(
        tmp_path / "clicks" / "2024-01-01.jsonl",
        [{**click, "id": n, "page": page} for n, page in ((1, "a/2"),)],
    )
    whole = TEXT.format(key=CAST).replace("joins:", STREAM)
    (located,) = [line for line in whole.splitlines(keepends=True) if "  located:" in line]
    run(make_pipeline(tmp_path, whole.replace(located, "")), spark)
    assert caplog.messages == []

    pipeline = make_pipeline(tmp_path, whole + LATER + VISITS)
    run(pipeline, spark)

    lake = Lake(pipeline.lake)
    assert _cities(lake, spark) == {1: "Rome", 2: None, 3: None}
    counts = {name: found.get("uncomputed") for name, found in Journal(lake).last.joins.items()}
    assert counts == {"located": 2, "over": 1, "again": 1, "constant": None, "visits": None}
    null = "rows cannot be computed, so it is null"
    mend = "Correct the rows by later records, or mend the expression"
    way = f"`lakejoin run {pipeline.path} --rebuild"
    again, located_told, over = sorted(caplog.messages)
    assert (
        again
        == f'again: the foreign key (cast(page as int)) of 1 {null}: {{"id":1}}. {mend} and give the join another name.'
    )
    assert (
        located_told
        == f'located: the foreign key ({CAST}) of 2 {null}: {{"id":2}}, {{"id":3}}. {mend}: {way} located`.'
    )
    assert (
        over
        == f'over: the foreign key (cast(right_city as int)) of 1 {null}: {{"id":1}}. {mend}: {way} over`.'
    )
    monkeypatch.setattr(options, "open_session", lambda _, **__: spark)
    assert "uncomputed" in CliRunner().invoke(app, ["status", str(pipeline.path)]).output

    caplog.clear()
    write_lines(tmp_path / "orders" / "2024-01-02.jsonl", [_order(2, "2"), _order(3, "x")])
    run(pipeline, spark)
    assert "uncomputed" not in Journal(lake).last.joins["located"]  # the record is in quarantine
    assert [message.split(":")[0] for message in caplog.messages] == ["over"]


RESULTS = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {{format: jsonl, path: "orders/{{date}}.jsonl"}}
    columns: {{id: bigint, customer: int, price: string}}
    key: [id]
  customers:
    source: {{format: jsonl, path: "customers/{{date}}.jsonl"}}
    columns: {{id: int, city: string, rate: string}}
    key: [id]
joins:
  priced:
    left: orders
    right: customers
    foreign_key: [customer]
    how: left
    prefix: c_
    select:
      - id
      - price: "{price}"
        rate: cast(c_rate as int)
        share: cast(length(price) / cast(c_city as int) as int)
    where: "coalesce(cast(c_rate as int), 0) < 100"
"""


def test_selected_value_that_cannot_be_computed(tmp_path: Path, spark: SparkSession) -> None:
    """Of one side, its record is in quarantine; of both, it is null and counted. Mended and retried, all are there."""
    customers = [{"op": "c", "id": key, "city": city, "rate": rate} for key, city, rate in
                 ((1, "1", "5"), (2, "0", "7"), (3, "1", "much"))]  # fmt: skip
    orders = [{"op": "c", "id": key, "customer": customer, "price": price} for key, customer, price in
              ((1, 1, "10"), (2, 2, "20"), (3, 3, "30"), (4, 1, "free"))]  # fmt: skip
    write_lines(tmp_path / "customers" / "2024-01-01.jsonl", customers)
    write_lines(tmp_path / "orders" / "2024-01-01.jsonl", orders)
    pipeline = make_pipeline(tmp_path, RESULTS.format(price="cast(price as int)"))
    run(pipeline, spark)
    lake = Lake(pipeline.lake)

    def joined() -> list[tuple[object, ...]]:
        rows = spark.read.format("delta").load(lake.path(joined_of("priced"))).orderBy("id").collect()
        return [(row["id"], row["price"], row["rate"], row["share"]) for row in rows]

    assert joined() == [(1, 10, 5, 2), (2, 20, 7, None), (3, 30, None, None)]
    assert [(reason, line) for reason, line, _ in _quarantine(lake, spark)] == [
        ("expression_failed", 3), ("expression_failed", 4)
    ]  # fmt: skip
    details = " ".join(detail for _, _, detail in _quarantine(lake, spark))
    assert 'select of priced: cast(price as int) cannot be computed from {"price":"free"}' in details
    assert 'select of priced: cast(`rate` as int) cannot be computed from {"rate":"much"}' in details
    assert Journal(lake).last.joins["priced"]["uncomputed"] == 1
    assert check_lake(pipeline, spark, batches=None).passed

    mended = make_pipeline(tmp_path, RESULTS.format(price="coalesce(try_cast(price as int), 0)"))
    run(mended, spark, rebuild=["priced"])
    list(retry(mended, lambda: spark, ["orders"]))
    assert joined() == [(1, 10, 5, 2), (2, 20, 7, None), (3, 30, None, None), (4, 0, 5, 4)]
    assert check_lake(mended, spark, batches=None).passed
