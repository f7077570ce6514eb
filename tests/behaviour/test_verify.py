"""What DuckDB computes beside what a lake holds: equal, until somebody changes the lake."""

import json
import random
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from dagster import AssetCheckEvaluation, DagsterInstance
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import lakejoin
from faults.shop import copy_of, make_pipeline, run, write_lines
from lakejoin.orchestration.cli import app, options
from lakejoin.orchestration.config import Pipeline, load
from lakejoin.orchestration.defs import verified_checks
from lakejoin.orchestration.defs.code_location import pipeline_definitions
from lakejoin.orchestration.defs.embedded_pipeline import EmbeddedPipeline
from lakejoin.orchestration.lake_state.published_snapshot import published_snapshot
from lakejoin.orchestration.verification.certificate import (
    Certificate,
    contents,
    differences,
    read_certificate,
)
from lakejoin.orchestration.verification.verify import Part, Verdict, cost, verify
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.lake.plan import Plan

pytestmark = pytest.mark.spark

TEXT = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {format: jsonl, path: "orders/{date}.jsonl"}
    columns:
      id: bigint
      customer: string
      amount: int
      price: decimal(10,2)
      weight: double
      at: timestamp
      tags: "array<string>"
      n: bigint
    key: [id]
  customers:
    source: {format: jsonl, path: "customers/{date}.jsonl"}
    columns: {name: string, city: string, there_b: int}
    key: [name]
joins:
  kept: {left: orders, right: customers, foreign_key: [customer], how: left, prefix: c_, history: true}
  sold:
    left: orders
    right: customers
    foreign_key: ["if(amount > 90, null, customer)"]
    how: inner
    prefix: c_
    where: amount is null or amount >= 5
    select: [id, c_city, {twice: amount * 2}, {half: amount / 2}, {day: cast(at as date)}]
  pairs: {left: orders, right: customers, foreign_key: [customer], how: inner, result_key: combined}
  board:
    left: orders
    rights:
      who: {table: customers, foreign_key: [customer], how: inner}
      sums: {table: totals, foreign_key: [customer], how: left}
    select: [id, who_city, {of_all: sums_total}]
  by_number: {left: numbers, right: customers, foreign_key: [customer], how: left, prefix: c_, history: true}
  loud: {left: orders, right: customers, foreign_key: [upper(customer)], how: left}
groups:
  numbers: {of: orders, by: [n, customer], select: {kind: count(*)}}
  totals:
    of: orders
    by: [customer]
    select: {orders: count(*), total: sum(price), mean: avg(amount), most: max(at), kilos: sum(weight)}
"""
NAMES = ("ada", "bob", "eve", "cyd", None)


def order(chance: random.Random) -> dict[str, Any]:
    """A change of an order; some values are null."""
    number = chance.randrange(30)
    gone = chance.random() < 0.2
    values = {
        "customer": chance.choice(NAMES),
        "amount": chance.choice([None, *range(0, 100, 7)]),
        "price": chance.choice([None, "0.10", "12.34", "99999.99"]),
        "weight": chance.choice([None, 0.1, -0.0, 3.3, 1e12]),
        "at": f"2024-01-{chance.randrange(1, 9):02}T{chance.randrange(24):02}:00:00Z",
        "tags": chance.choice([None, [], ["a", None]]),
        "n": chance.choice([None, 1, 2]),
    }
    return {"op": "d" if gone else "u", "id": number, **({} if gone else values)}


def customer(chance: random.Random) -> dict[str, Any]:
    """A change of a customer."""
    gone = chance.random() < 0.3
    return {"op": "d" if gone else "u", "name": chance.choice(NAMES[:-1])} | (
        {} if gone else {"city": chance.choice(["Paris", "Rome", None]), "there_b": chance.choice([None, 3])}
    )


def make(folder: Path, seed: int, days: int) -> Pipeline:
    """Write a pipeline with random days."""
    chance = random.Random(seed)
    for day in range(1, days + 1):
        write_lines(folder / "orders" / f"2024-01-{day:02}.jsonl", [order(chance) for _ in range(40)])
        write_lines(folder / "customers" / f"2024-01-{day:02}.jsonl", [customer(chance) for _ in range(4)])
    return make_pipeline(folder, TEXT)


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    """Return a pipeline whose three days are worked off."""
    pipeline = make(tmp_path_factory.mktemp("shop"), 1, 3)
    assert run(pipeline, spark, batch_by="date") == 3
    return pipeline


def held(pipeline: Pipeline, batch: int | None = None) -> Plan:
    """The snapshot of a batch."""
    return published_snapshot(Journal(Lake(pipeline.lake)), batch)


def verdicts(pipeline: Pipeline, snapshot: Plan, part: Part = Part()) -> dict[str, Verdict]:  # noqa: B008 - frozen
    """What becomes of each result."""
    return {verdict.name: verdict for verdict in verify(pipeline, snapshot, list(pipeline.joins), part)}


def test_every_batch_of_a_lake_is_as_duckdb_computes_it(shop: Pipeline) -> None:
    """Joins of every kind, groups and a history; what cannot be verified is said, with the reason."""
    for batch in (1, 2, 3):
        found = verdicts(shop, held(shop, batch))
        assert not [verdict for verdict in found.values() if verdict.differs]
        assert {name for name, verdict in found.items() if verdict.unverified} == {"loud"}
        assert sum(verdict.comparison.rows for verdict in found.values() if verdict.comparison) > 50
    assert (
        found["loud"].unverified
        == "its foreign key, upper(customer): DuckDB may understand it otherwise than Spark"
    )
    assert found["sold"].left_out == ["half: amount / 2"]
    assert found["totals"].left_out == ["kilos: sum(`weight`)"]
    assert found["kept.history"].comparison is not None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 8))
def test_random_lakes_are_as_duckdb_computes_them(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    """No difference is found where none was made."""
    pipeline = make(tmp_path, seed, 4)
    run(pipeline, spark, batch_by="date")
    for batch in range(1, 5):
        assert not [
            verdict for verdict in verdicts(pipeline, held(pipeline, batch)).values() if verdict.differs
        ]


PLANTED: Mapping[str, tuple[str, str, str, str | None]] = {
    "a cell of a left column": (
        "kept",
        "UPDATE {t} SET amount = coalesce(amount, 0) + 1 WHERE {row}",
        "different",
        "amount",
    ),
    "a cell that becomes null": ("kept", "UPDATE {t} SET at = NULL WHERE {row}", "different", "at"),
    "a cell of a right column": (
        "kept",
        "UPDATE {t} SET c_city = 'Oslo' WHERE {row}",
        "different",
        "c_city",
    ),
    "a stale right key": ("kept", "UPDATE {t} SET c_name = 'zoe' WHERE {row}", "different", "c_name"),
    "a cell in an array": ("kept", "UPDATE {t} SET tags = array('b') WHERE {row}", "different", "tags"),
    "a cell by a microsecond": (
        "kept",
        "UPDATE {t} SET at = at + INTERVAL 1 MICROSECOND WHERE {row}",
        "different",
        "at",
    ),
    "a cent": (
        "kept",
        "UPDATE {t} SET price = coalesce(price, 0) + 0.01 WHERE {row}",
        "different",
        "price",
    ),
    "a row that is gone": ("kept", "DELETE FROM {t} WHERE {row}", "missing", None),
    "a row that was deleted": ("kept", "UPDATE {t} SET id = 4711 WHERE {row}", "extra", None),
    "a row twice": ("kept", "INSERT INTO {t} SELECT * FROM {t} WHERE {row}", "doubled", None),
    "a computed cell": ("sold", "UPDATE {t} SET twice = 1 WHERE {row}", "different", "twice"),
    "a computed day": ("sold", "UPDATE {t} SET day = DATE '1999-01-01' WHERE {row}", "different", "day"),
    "a row of an inner join": ("sold", "DELETE FROM {t} WHERE {row}", "missing", None),
    "a pair under another key": ("pairs", "UPDATE {t} SET right_name = 'zoe' WHERE {row}", "extra", None),
    "a column of a star": ("board", "UPDATE {t} SET of_all = 0.01 WHERE {row}", "different", "of_all"),
    "a row of a star": ("board", "DELETE FROM {t} WHERE {row}", "missing", None),
    "a count": ("totals", "UPDATE {t} SET orders = orders + 1 WHERE customer = 'ada'", "different", "orders"),
    "a sum": (
        "totals",
        "UPDATE {t} SET total = coalesce(total, 0) + 0.01 WHERE customer IS NULL",
        "different",
        "total",
    ),
    "a mean": (
        "totals",
        "UPDATE {t} SET mean = coalesce(mean, 0) + 0.01 WHERE customer = 'ada'",
        "different",
        "mean",
    ),
    "a group": ("totals", "DELETE FROM {t} WHERE customer = 'ada'", "missing", None),
}


@pytest.fixture(scope="module")
def planted(shop: Pipeline, tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    """Return a copy of the lake, for those who change it."""
    return copy_of(shop, tmp_path_factory.mktemp("planted") / "shop")


EACH_TIME = {"a cell of a left column", "a row that is gone", "a row twice", "a sum"}
"""Planted whenever the tests run; each takes some seconds."""


@pytest.mark.parametrize(
    "what", [pytest.param(what, marks=[] if what in EACH_TIME else pytest.mark.slow) for what in PLANTED]
)
def test_planted_difference_is_found(spark: SparkSession, planted: Pipeline, what: str) -> None:
    """By its kind and its column, and nothing else is said to differ. No gate looks at what is written here."""
    name, sql, kind, column = PLANTED[what]
    snapshot, table = held(planted), f"joins/{name}/joined"
    path = Lake(planted.lake).path(table)
    before = spark.read.format("delta").option("versionAsOf", snapshot.versions[table]).load(path)
    number = before.where("c_city IS NOT NULL" if name == "kept" else "true").first()
    spark.sql(sql.format(t=f"delta.`{path}`", row=f"id = {number['id']}" if "id" in before.columns else ""))
    newest = Lake(planted.lake).snapshot(table)

    changed = replace(snapshot, versions={**snapshot.versions, table: newest.version})
    found = verdicts(planted, changed)[name].comparison

    spark.sql(f"RESTORE delta.`{path}` TO VERSION AS OF {snapshot.versions[table]}")
    assert found.kinds[kind] == 1
    assert set(found.columns) == ({column} if column else set())
    first = next(one for one in found.first if one.kind == kind)
    assert set(first.cells) == ({column} if column else set())


def test_wrong_boundary_of_a_version_is_found(spark: SparkSession, planted: Pipeline) -> None:
    """A version that goes on into the next one, and one that was never ended."""
    snapshot, table = held(planted), "joins/kept/history"
    path = Lake(planted.lake).path(table)
    ended = f"_lj_until IS NOT NULL AND id IN (SELECT id FROM delta.`{path}` WHERE _lj_until IS NULL)"
    one = spark.sql(f"SELECT id, _lj_batch FROM delta.`{path}` WHERE {ended}").first()
    found = {}
    for what, change in {
        "overlap": "valid_to = valid_to + INTERVAL 1 DAY",
        "open": "valid_to = NULL, _lj_until = NULL",
    }.items():
        at = f"id = {one['id']} AND _lj_batch = {one['_lj_batch']} AND _lj_until IS NOT NULL"
        spark.sql(f"UPDATE delta.`{path}` SET {change} WHERE {at}")
        newest = Lake(planted.lake).snapshot(table)
        changed = replace(snapshot, versions={**snapshot.versions, table: newest.version})
        found[what] = verdicts(planted, changed)["kept.history"]
        spark.sql(f"RESTORE delta.`{path}` TO VERSION AS OF {snapshot.versions[table]}")
    assert found["overlap"].overlaps == 1
    assert found["overlap"].comparison.equal
    assert found["open"].comparison.kinds["doubled"] == 1


def test_samples_of_successive_batches_cover_all_rows(shop: Pipeline) -> None:
    """Each row is in one part; so after as many batches each was verified."""
    snapshot = held(shop)
    whole = verdicts(shop, snapshot)["kept"].comparison.rows
    first = verdicts(shop, snapshot, Part(rows=5))["kept"]
    rows = [
        verdicts(shop, replace(snapshot, batch=snapshot.batch + turn), Part(rows=5))["kept"].comparison.rows
        for turn in range(first.parts)
    ]
    turns = [
        verdicts(shop, snapshot, Part(rows=5, turn=turn))["kept"].comparison.rows
        for turn in range(first.parts)
    ]
    assert first.parts > 1
    assert sum(rows) == sum(turns) == whole
    assert 0 < first.at_most < 1


def test_command_says_what_is_equal_and_what_differs(shop: Pipeline) -> None:
    """With exit codes; single keys; and what cannot be asked."""

    def call(*arguments: str) -> Any:
        return CliRunner().invoke(app, ["verify", str(shop.path), *arguments], catch_exceptions=False)

    whole = call()
    assert whole.exit_code == 0
    assert re.match(r"reads at most \d+\.\d MB, in \d+ files of \d+ tables\n", whole.stdout)
    assert "loud: not verified: its foreign key, upper(customer)" in whole.stdout
    assert "  not compared: half: amount / 2" in whole.stdout
    assert whole.stdout.rstrip().endswith(" not verified")
    assert call("loud").exit_code == 1
    told = json.loads(call("totals", "--key", "ada", "--key", "[null]", "--format", "json").stdout)
    assert [(one["name"], one["rows"], one["equal"]) for one in told] == [("totals", 2, True)]
    assert "with 95 % confidence at most" in call("kept", "--sample", "3").stdout
    for wrong in (
        ("nobody",),
        ("--key", "1"),
        ("kept", "--key", "1", "--sample", "1"),
        ("kept", "--key", "x"),
    ):
        assert call(*wrong).exit_code == 2


def test_cost_is_the_files_of_what_is_read(shop: Pipeline) -> None:
    """All results read each table once; a result that DuckDB cannot compute reads nothing."""
    snapshot = held(shop)
    every, one, none = (cost(shop, snapshot, names) for names in ([*shop.joins], ["kept"], ["loud"]))
    assert (none.tables, none.files, none.bytes) == (0, 0, 0)
    assert 0 < one.files < every.files
    assert 0 < one.bytes < every.bytes
    # its rows, its history, and both sides as changes and, where they were folded, rows
    assert 4 <= one.tables <= 6


def test_dagster_verifies_a_part_after_each_run_and_all_by_itself(
    planted: Pipeline, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts take turns; what somebody changed is found by the job of checks alone."""
    text = planted.path.read_text()
    planted.path.write_text(text + "expect: {verified: {rows: 10, blocking: true}}\n")
    pipeline = load(planted.path)
    planted.path.write_text(text)
    with DagsterInstance.ephemeral() as instance:
        runs = [_evaluated(pipeline, "shop_job", instance) for _ in range(3)]
        snapshot, table = held(pipeline), "joins/kept/joined"
        path = Lake(pipeline.lake).path(table)
        number = spark.read.format("delta").load(path).first()["id"]
        spark.sql(f"UPDATE delta.`{path}` SET c_city = 'nowhere' WHERE id = {number}")
        newest = {**snapshot.versions, table: Lake(pipeline.lake).snapshot(table).version}
        changed = replace(snapshot, versions=newest)
        monkeypatch.setattr(verified_checks, "published_snapshot", lambda _: changed)
        alone = _evaluated(pipeline, "shop_check", instance)
        spark.sql(f"RESTORE delta.`{path}` TO VERSION AS OF {snapshot.versions[table]}")

    assert "loud" not in runs[0]
    assert all(check.passed for run in runs for check in run.values())
    assert runs[0]["kept"].metadata["parts"].value > 2
    assert [run["kept"].metadata["part"].value for run in runs] == [1, 2, 3]
    assert alone["pairs"].metadata["parts"].value == 1
    assert {name for name, check in alone.items() if not check.passed} == {"kept"}
    assert "1 are not what DuckDB computes" in (alone["kept"].description or "")
    rows = alone["kept"].metadata["sample"].records
    assert [row.data["result"] for row in rows] == ["kept", "kept.history"]
    assert {row.data["key"] for row in rows} == {json.dumps({"id": str(number)})}


def test_certificate_is_that_of_any_cut_and_finds_each_change(
    shop: Pipeline, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same rows by one batch in the place of three; a cell, a row less, a row twice, another file."""
    monkeypatch.setattr(options, "open_session", lambda *_, **__: spark)
    made = CliRunner().invoke(
        app, ["certify", str(shop.path), "--into", str(tmp_path / "c.json"), "--replay", "all"]
    )
    assert made.exit_code == 0, made.output
    assert "made once more in 1 batch: the same content" in made.stdout
    certificate = read_certificate(tmp_path / "c.json")
    assert certificate.replay is not None
    assert certificate.replay.content == certificate.content
    assert certificate.content["totals"].left_out == ("kilos",)
    assert {"mean", "total"} <= certificate.content["totals"].columns.keys()
    assert set(certificate.content) == {*shop.joins, *shop.inputs}
    assert certificate.inputs["orders"].files == 3

    copy = copy_of(shop, tmp_path / "copy")
    checked = ["certify", str(copy.path), "--check", str(tmp_path / "c.json")]
    same = CliRunner().invoke(app, checked)
    assert same.exit_code == 0, same.output
    assert sorted(same.stdout.splitlines()) == [f"{name}: as certified" for name in certificate.content]
    rows = certificate.content["kept"].rows
    for change, said in (
        (
            "UPDATE {t} SET c_city = 'nowhere' WHERE id = {id}",
            f"{rows:,} rows, as certified, with other values",
        ),
        ("DELETE FROM {t} WHERE id = {id}", f"{rows - 1:,} rows; certified {rows:,}"),
        ("INSERT INTO {t} SELECT * FROM {t} WHERE id = {id}", f"{rows + 1:,} rows; certified {rows:,}"),
    ):
        told = changed(copy, spark, change, certificate)
        assert told == {"kept": said}


def changed(pipeline: Pipeline, spark: SparkSession, change: str, certificate: Certificate) -> dict[str, str]:
    """What a certificate says of a lake in which a statement changed a row of `kept`."""
    lake, table = Lake(pipeline.lake), "joins/kept/joined"
    path, snapshot = lake.path(table), held(pipeline)
    number = spark.read.format("delta").load(path).orderBy("id").first()["id"]
    spark.sql(change.format(t=f"delta.`{path}`", id=number))
    newest = replace(snapshot, versions={**snapshot.versions, table: lake.snapshot(table).version})
    content = dict(contents(pipeline, Journal(lake), newest))
    spark.sql(f"RESTORE delta.`{path}` TO VERSION AS OF {snapshot.versions[table]}")
    now = certificate.model_copy(update={"content": content})
    return dict(differences(certificate, now).content)


def _evaluated(pipeline: Pipeline, job: str, instance: DagsterInstance) -> dict[str, AssetCheckEvaluation]:
    """What a job says of each result's check."""
    definitions = pipeline_definitions(EmbeddedPipeline(pipeline, partitioned=False), datetime.now(UTC))
    asked = definitions.get_repository_def().get_job(job)
    done = asked.execute_in_process(instance=instance, raise_on_error=False)
    found = [check for check in done.get_asset_check_evaluations() if check.check_name == "verified"]
    return {check.asset_key.path[-1]: check for check in found}


def test_diff_says_what_two_batches_hold_differently(shop: Pipeline) -> None:
    """Rows and cells, in words and as JSON; a batch beside itself is equal."""

    def call(*arguments: str) -> Any:
        return CliRunner().invoke(app, ["diff", *arguments], catch_exceptions=False)

    same = call(str(shop.path), f"{shop.path}@3")
    assert same.exit_code == 0
    assert "differs" not in same.stdout
    told = json.loads(call(f"{shop.path}@1", str(shop.path), "kept", "--format", "json").stdout)[0]
    rows = {
        batch: {row["id"]: row for row in json.loads(json.dumps(_rows(shop, batch), default=str))}
        for batch in (1, 3)
    }
    changed = [key for key in rows[1].keys() & rows[3].keys() if rows[1][key] != rows[3][key]]
    expected = {
        "missing": len(rows[1].keys() - rows[3].keys()),
        "extra": len(rows[3].keys() - rows[1].keys()),
        "different": len(changed),
    }
    assert told["kinds"] == {kind: number for kind, number in expected.items() if number}
    assert call(f"{shop.path}@1", str(shop.path), "kept").exit_code == 1
    assert call(f"{shop.path}@9", str(shop.path)).exit_code == 2
    assert call("nothing.yaml", str(shop.path)).exit_code == 2


def _rows(pipeline: Pipeline, batch: int) -> list[dict[str, Any]]:

    rows: list[dict[str, Any]] = lakejoin.read(pipeline.path).at(batch).arrow("kept").to_pylist()
    return rows
