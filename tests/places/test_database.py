"""A real PostgreSQL as a source: after each run rows and joins are those that it has itself, whatever ended the run."""

import json
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from faults.crashing import Crash, commits
from faults.shop import joins, make_pipeline, run, texts
from lakejoin.orchestration.cli import app, options
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.lake_state.published_snapshot import published_snapshot
from lakejoin.orchestration.planning.input_checks import TooManyDeleted
from lakejoin.orchestration.runs.reconcile import Differences, reconcile
from lakejoin.storage.errors import SourceRefused, SourceUnreadable
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import QUARANTINE, Lake, joined_of
from lakejoin.storage.sources.database.dumps import dumps
from lakejoin.storage.spark.jars import JarsNotFound, cache_directory, spark_resolver
from lakejoin.storage.spark.java import find_java, wrap_java
from lakejoin.storage.spark.jdbc import NOT_FETCHED, provide_driver
from lakejoin.storage.spark.start import _SPARK_HOME
from lakejoin.storage.state.pinned_state import State
from recordings.databases import Database, install, start

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SHOP = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {{format: jdbc, mode: snapshot, url: "{url}", every: {every},
             query: "select order_id, customer, amount from orders where amount > 0 -- paid"}}
    columns: {{id: {{type: bigint, from: order_id}}, customer: string, amount: "decimal(12,2)"}}
    key: [id]
  customers:
    source: {{format: jdbc, mode: snapshot, url: "{url}", table: public.customers, every: {every}}}
    columns: {{name: string, city: string}}
    key: [name]
joins:
  located: {{left: orders, right: customers, foreign_key: [customer], how: left, prefix: c_}}
"""
BEGIN = """\
create table customers (name text primary key, city text, secret text);
create table orders (order_id int primary key, customer text, amount numeric);
insert into customers select 'c' || n, 'city ' || n from generate_series(1, 20) n;
insert into orders select n, 'c' || n % 25, n * 1.5 from generate_series(1, 60) n;
"""
LATER = """\
update customers set city = 'Oslo' where name in ('c1', 'c7');
delete from customers where name = 'c3';
insert into customers values ('c21', 'Rome'), ('c22', null);
update orders set customer = 'c22', amount = 7 where order_id between 5 and 9;
update orders set amount = 0 where order_id = 10;
delete from orders where order_id > 55;
insert into orders values (100, 'c1', 1234567.89);
"""
ANSWER = """\
select json_build_object('id', order_id, 'customer', customer, 'amount', to_json(amount::numeric(12,2)),
  'c_name', name, 'c_city', city)
from orders left join customers on customer = name where amount > 0
"""
KINDS = """\
create type mood as enum ('fine');
create type pair as (x int, y text);
create table kinds (id int, n numeric, big numeric, at timestamptz, local timestamp, d date, doc jsonb, u uuid,
  numbers int[], words text[], pair pair, raw bytea, mood mood, padded char(4), f float8, b boolean, "Odd ""Name" text);
insert into kinds values (1, 12345678901234567890.123456789012345678, 1.5, '2026-11-28 12:00:00.123456+02',
  '2026-11-28 12:00:00', '2026-02-28', '{"a": [1, 2.50]}', 'f47ac10b-58cc-4372-a567-0e02b2c3d479', '{1,null,3}',
  '{"a,b","c"}', (1, 'q'), '\\xdead', 'fine', 'ab', 0.1, true, 'odd');
insert into kinds (id, n) values (2, 'NaN');
insert into kinds (id, at) values (3, 'infinity');
insert into kinds (id, big) values (4, 1e40);
insert into kinds (id) values (5);
"""
OF_KINDS = """\
name: kinds
lake: ./lake
tables:
  kinds:
    source: {{format: jdbc, mode: snapshot, url: "{url}", table: kinds, timezone: Europe/Berlin}}
    columns: {{id: int, n: "decimal(38,18)", big: "decimal(20,1)", at: timestamp, local: timestamp, d: date,
      doc: string, u: string, numbers: array<int>, words: array<string>, pair: "struct<x:int,y:string>",
      raw: binary, mood: string, padded: string, f: double, b: boolean, odd: {{type: string, from: "odd \\"name"}}}}
    key: [id]
"""


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    """Return a server with an empty database, for all tests of the module."""
    try:
        install("postgres")
    except SystemExit as error:
        pytest.skip(str(error))
    # the server is another user's, who may not look into the folders of pytest
    with tempfile.TemporaryDirectory(prefix="lakejoin-postgres-") as folder:
        Path(folder).chmod(0o755)
        server = start("postgres", Path(folder))
        yield server
        server.stop()


@pytest.fixture
def asking(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> SparkSession:
    """Return the session with the driver, which it would be started with, and set the login."""
    monkeypatch.setenv("LAKEJOIN_JDBC_USERNAME", "postgres")
    monkeypatch.setenv("LAKEJOIN_JDBC_PASSWORD", "hush-hush")
    cache = cache_directory(os.environ)
    java = wrap_java(find_java(os.environ), cache)
    try:
        jars = provide_driver(cache / "jars", spark_resolver(_SPARK_HOME, java, {}, NOT_FETCHED))
    except JarsNotFound as error:
        pytest.skip(f"no driver: {error.lines[0]}")
    for jar in jars:
        spark.sql(f"ADD JAR '{jar}'")
    return spark


def url_of(database: Database, name: str) -> str:
    """A new database of the server, by its URL."""
    database.ask(f"create database {name};")
    return f"jdbc:postgresql://127.0.0.1:{database.port}/{name}"


def ask(database: Database, name: str, sql: str) -> str:
    """Ask one of the server's databases."""
    return database.ask(f"\\connect {name}\n{sql}")


def rows_of(text: str) -> list[str]:
    """Lines of JSON, sorted, written in one way."""
    return sorted(json.dumps(json.loads(line)) for line in text.splitlines())


def answer(database: Database) -> list[str]:
    """What the database makes of its tables."""
    return rows_of(ask(database, "shop", ANSWER))


def joined(pipeline: Pipeline, spark: SparkSession) -> list[str]:
    """What the lake has."""
    return rows_of("\n".join(joins(pipeline, spark)["located"]))


def test_rows_are_those_of_the_database_whatever_ends_a_run(
    tmp_path: Path, asking: SparkSession, database: Database
) -> None:
    """Between the dump and the plan, or at a commit: the batch is that of the dump. No file has the password."""
    url = url_of(database, "shop")
    pipeline = make_pipeline(tmp_path, SHOP.format(url=url, every="0 seconds"))
    daily = make_pipeline(tmp_path, SHOP.format(url=url, every="1 day"))
    ask(database, "shop", BEGIN)

    # the dumps are there, and no plan: the next run reads them, and asks nobody
    first = answer(database)
    with mock.patch.object(Journal, "write_plan", side_effect=Crash), pytest.raises(Crash):
        run(daily, asking)
    ask(database, "shop", LATER)
    cut_off = Path(Lake(daily.lake).path("_dumps/customers/20991231T000000000000Z"))
    cut_off.mkdir()
    assert (run(daily, asking), joined(daily, asking)) == (1, first)
    assert run(daily, asking) == 0
    with mock.patch.object(options, "open_session", side_effect=AssertionError("a session was started")):
        for command in ("run", "status"):  # the file is that of `daily`
            told = CliRunner().invoke(app, [command, str(daily.path)]).stdout.lower()
            assert "nothing" in told
            assert told.count("was dumped at") == 2

    # the batch is planned: the next run ends it, and takes new dumps then
    second = answer(database)
    with commits(joined_of("located"), "before"), pytest.raises(Crash):
        run(pipeline, asking)
    ask(
        database,
        "shop",
        "update customers set city = 'Bonn' where name = 'c2'; delete from orders where order_id = 1;",
    )
    assert (run(pipeline, asking, batches=1), joined(pipeline, asking)) == (1, second)
    assert (run(pipeline, asking), joined(pipeline, asking)) == (1, answer(database))
    assert not cut_off.exists()
    assert len({*map(str, (first, second, answer(database)))}) == 3
    secrets = (b"hush-hush", b"LAKEJOIN_JDBC")
    assert not [f for f in tmp_path.rglob("*") if f.is_file() and any(s in f.read_bytes() for s in secrets)]

    _expect_emptied_table_stops(pipeline, asking, database)


def _expect_emptied_table_stops(pipeline: Pipeline, spark: SparkSession, database: Database) -> None:
    """A run, before its plan; and the next one asks anew."""
    lake = Lake(pipeline.lake)
    plans = len(Journal(lake).plans)
    ask(database, "shop", "create table kept as select * from customers; truncate customers;")
    with pytest.raises(TooManyDeleted, match=r"table customers: .* lacks 21 of 21 rows"):
        run(pipeline, spark)
    assert (len(Journal(lake).plans), dumps(lake.path("_dumps/customers"))) == (plans, [])
    ask(database, "shop", "insert into customers select * from kept where name <> 'c4';")
    assert (run(pipeline, spark), joined(pipeline, spark)) == (1, answer(database))
    assert [len(dumps(lake.path(f"_dumps/{name}"))) for name in ("orders", "customers")] == [1, 1]


def test_page_of_a_table_of_a_database_can_be_followed(
    tmp_path: Path, asking: SparkSession, database: Database
) -> None:
    """With another address."""
    page = (Path(__file__).parents[2] / "docs" / "snapshots.md").read_text("utf-8")
    sql = re.search(r"```sql\n(.*?)```", page, re.DOTALL)
    file = re.search(r"```yaml\n(# database\.yaml\n.*?)```", page, re.DOTALL)
    assert sql is not None
    assert file is not None
    url = url_of(database, "page")
    ask(database, "page", sql[1])
    pipeline = make_pipeline(tmp_path, file[1].replace("jdbc:postgresql://localhost:5432/shop", url))
    assert run(pipeline, asking) == 1
    found = [json.loads(row) for row in joins(pipeline, asking)["orders_with_customers"]]
    assert [(row["placed"], row["c_city"], row["c_since"], row["c_credit"]) for row in found] == [
        ("2026-11-02T07:00:00.000Z", "Lyon", "2026-11-01T09:00:00.000Z", 100.0),
        ("2026-11-02T08:30:00.000Z", None, None, None),
    ]


def test_values_are_those_of_the_database_or_in_quarantine(
    tmp_path: Path, asking: SparkSession, database: Database
) -> None:
    """Numbers with all digits, times with their zones, documents, lists, bytes; and what is no value of its type."""
    url = url_of(database, "kinds")
    ask(database, "kinds", KINDS)
    pipeline = make_pipeline(tmp_path, OF_KINDS.format(url=url))
    assert run(pipeline, asking) == 1
    lake = Lake(pipeline.lake)
    state = State(asking, lake, published_snapshot(Journal(lake)))
    table = pipeline.tables["kinds"].spec
    found = [json.loads(text) for text in texts(state.all_rows(table).select(*table.columns.names))]
    assert found[0] == {
        "id": 1, "n": 12345678901234567890.123456789012345678, "big": 1.5, "at": "2026-11-28T10:00:00.123Z",
        "local": "2026-11-28T11:00:00.000Z", "d": "2026-02-28", "doc": '{"a": [1, 2.50]}',
        "u": "f47ac10b-58cc-4372-a567-0e02b2c3d479", "numbers": [1, None, 3], "words": ["a,b", "c"],
        "pair": {"x": 1, "y": "q"}, "raw": "3q0=", "mood": "fine", "padded": "ab  ", "f": 0.1, "b": True, "odd": "odd",
    }  # fmt: skip
    assert [row["id"] for row in found] == [1, 5]
    bad = asking.read.format("delta").load(lake.path(QUARANTINE)).orderBy("raw").collect()
    assert [(json.loads(row["raw"])["id"], row["reason"]) for row in bad] == [
        (2, "type_mismatch"), (3, "bad_timestamp"), (4, "type_mismatch"),
    ]  # fmt: skip


def test_database_that_cannot_be_asked_is_told(
    tmp_path: Path, asking: SparkSession, database: Database
) -> None:
    """Before anything is planned: no server, no table, no such column."""
    url = url_of(database, "nothing")
    ask(database, "nothing", "create table customers (name text); insert into customers values ('a');")
    text = (
        SHOP.partition("  orders:")[0]
        + "  customers:"
        + SHOP.partition("  customers:")[2].partition("joins:")[0]
    )

    def said(kind: type[Exception], old: str = "", new: str = "") -> str:
        pipeline = make_pipeline(tmp_path, text.format(url=url, every="1 day").replace(old, new))
        with pytest.raises(kind) as error:
            run(pipeline, asking)
        assert not Journal(Lake(pipeline.lake)).plans
        return str(error.value)

    missing = said(SourceRefused)
    assert missing.startswith(f"table customers: {url}: has no column 'city'; found name. Correct the name")
    absent = said(SourceRefused, "public.customers", "public.custmers")
    assert 'cannot answer (ERROR: relation "public.custmers" does not exist)' in absent
    away = said(SourceUnreadable, str(database.port), "1")
    assert "does not answer (Connection to 127.0.0.1:1 refused." in away


def test_table_of_change_data_is_compared_with_a_database(
    tmp_path: Path, asking: SparkSession, database: Database
) -> None:
    """With a dump that is taken then, each time."""
    url = url_of(database, "beside")
    ask(
        database,
        "beside",
        "create table customers (name text, city text); insert into customers values ('a', 'Rome')",
    )
    (tmp_path / "changes.jsonl").write_text('{"op": "c", "name": "a", "city": "Oslo"}\n')
    pipeline = make_pipeline(
        tmp_path,
        f"""\
name: shop
lake: ./lake
tables:
  customers:
    source: {{format: jsonl, path: changes.jsonl}}
    columns: {{name: string, city: string}}
    key: [name]
    reconcile: {{format: jdbc, url: "{url}", table: customers}}
""",
    )
    assert run(pipeline, asking) == 1

    def differing(*, mend: bool) -> int:
        found = next(iter(list(reconcile(pipeline, lambda: asking, "customers", mend=mend))))
        assert isinstance(found, Differences)
        return found.count

    assert [differing(mend=True), differing(mend=False)] == [1, 0]
    ask(database, "beside", "insert into customers values ('b', 'Bonn')")
    assert differing(mend=False) == 1
