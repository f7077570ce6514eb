"""Why a row is as it is, or is not there: answers about every kind of result, from the logs of a lake."""

import json
import re
from html import escape
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from dagster import DagsterInstance
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StructType
from typer.testing import CliRunner

import lakejoin
from faults.shop import make_pipeline, run, write_lines
from lakejoin.orchestration.cli import app
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.defs.explain_job import explain_job
from lakejoin.orchestration.errors import WrongUsage
from lakejoin.orchestration.explain.explain import Question, explained
from lakejoin.orchestration.explain.explanation import Explanation
from lakejoin.orchestration.explain.log_rows import key_of
from lakejoin.storage.delta_log.arrow_query import query

pytestmark = pytest.mark.spark

TEXT = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {format: jsonl, path: "orders/{date}.jsonl"}
    columns: {id: bigint, v: bigint, customer: string, item: string, amount: int}
    key: [id]
    sequence: [v]
    where: amount is null or amount < 1000
  customers:
    source: {format: jsonl, path: "customers/{date}.jsonl"}
    columns: {name: string, city: string}
    key: [name]
  items:
    source: {format: jsonl, path: "items/{date}.jsonl"}
    columns: {sku: string, price: int, at: timestamp}
    key: [sku]
    event_time: at
    versioned: {history_retention: 10 days}
  notes:
    source: {format: jsonl, path: "notes/{date}.jsonl"}
    columns: {id: bigint, n: int}
    key: [id]
streams:
  clicks:
    source: {format: jsonl, path: "clicks/{date}.jsonl"}
    columns: {id: bigint, sku: string, kind: string, at: timestamp}
    key: [id]
    event_time: at
    where: kind = 'buy'
joins:
  sold:
    left: orders
    right: customers
    foreign_key: [customer]
    how: inner
    select: [id, customer_city, {twice: amount * 2}]
    prefix: customer_
  kept: {left: orders, right: customers, foreign_key: [customer], how: left, history: true}
  dear: {left: orders, right: customers, foreign_key: [customer], how: inner, where: amount > 15}
  pairs: {left: orders, right: customers, foreign_key: [customer], how: inner, result_key: combined}
  placed: {left: kept, right: items, foreign_key: [lower(item)], how: left, prefix: item_}
  board:
    left: orders
    rights:
      who: {table: customers, foreign_key: [customer], how: inner}
      what: {table: items, foreign_key: [item], how: left}
  seen: {stream: clicks, table: items, foreign_key: [sku], how: inner, grace: 1 hour}
groups:
  by_customer: {of: orders, by: [customer], select: {orders: count(*)}}
  large: {of: orders, by: [{who: upper(customer)}], select: {most: max(amount)}, having: most > 15}
"""
ORDER = ("id", "v", "customer", "item", "amount")
DAYS = {
    "2024-01-01": {
        "orders": [
            ("c", 1, 1, "ada", "pen", 10), ("c", 2, 1, "bob", "ink", 20), ("c", 3, 1, None, "pen", 30),
            ("c", 4, 1, "eve", "ink", 40), ("c", 5, 1, "ada", "pen", 50), ("c", 7, 9, "ada", "pen", 5000),
            ("c", 20, 99, None, None, 1),
        ],
        "customers": [("c", "ada", "Paris"), ("c", "bob", "Rome")],
        "items": [("c", "pen", 1, "2024-01-01T00:00:00Z"), ("u", "pen", 2, "2024-01-01T06:00:00Z")],
        "clicks": [
            ("c", 1, "pen", "buy", "2024-01-01T05:00:00Z"), ("c", 2, "pen", "look", "2024-01-01T05:00:00Z"),
            ("c", 3, "cup", "buy", "2024-01-01T05:00:00Z"), ("c", 4, "pen", "buy", "2024-01-01T08:00:00Z"),
        ],
        "notes": [("u", 3, n) for n in range(1, 15)],
    },
    "2024-01-02": {
        "orders": [
            ("u", 2, 2, "ada", "ink", 20), ("d", 5, 2, None, None, None), ("u", 1, 0, "bob", "pen", 9),
            ("u", "six", 1, "ada", "pen", 1), ("u", 4, 1, "eve", "ink", 40),
        ],
        "customers": [("u", "ada", "Lyon"), ("d", "bob", None)],
        "clicks": [("c", 5, "pen", "buy", "2024-01-01T06:30:00Z")],
        "notes": [("c", 8, "many")],
    },
    "2024-01-03": {
        "customers": [("c", "eve", "Bonn")],
        "orders": [("u", 3, 2, "cyd", "pen", 12), *[("u", 20, v, None, None, 2) for v in range(11)]],
    },
}  # fmt: skip
NAMES = {
    "orders": ORDER,
    "customers": ("name", "city"),
    "items": ("sku", "price", "at"),
    "clicks": ("id", "sku", "kind", "at"),
    "notes": ("id", "n"),
}


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    """Return a pipeline whose three days are worked off, a batch for each."""
    folder = tmp_path_factory.mktemp("shop")
    for day, sources in DAYS.items():
        for source, columns in NAMES.items():
            records = [dict(zip(("op", *columns), row, strict=True)) for row in sources.get(source, ())]
            write_lines(folder / source / f"{day}.jsonl", records)
    pipeline = make_pipeline(folder, TEXT)
    assert run(pipeline, spark, batch_by="date") == len(DAYS)
    return pipeline


def explanation(
    pipeline: Pipeline, name: str, key: str, batch: int | None = None, **asked: object
) -> Explanation:
    """Ask why."""
    return explained(pipeline, Question(name, key, batch, **asked))


def said(found: Explanation) -> str:
    """All sentences, a line each, indented as deep as they stand."""
    return "\n".join("  " * depth + text for finding in found.findings for depth, text in finding.lines())


@pytest.mark.parametrize(
    ("name", "key", "batch", "answer"),
    [
        ("orders", "1", None, "orders 1 is there, as the record at 2024-01-01.jsonl:1 made it in batch 1"),
        ("orders", "5", None, "orders 5 is not there: taken away by a delete, 2024-01-02.jsonl:2, in batch 2"),
        ("orders", "5", 1, "orders 5 is there, as the record at 2024-01-01.jsonl:5 made it in batch 1"),
        ("orders", "6", None, "orders 6 is not there: no record of it was ever accepted"),
        (
            "orders", "7", None,
            ("orders 7 is not there: taken away by its condition: amount is null or amount < 1000, 2024-01-01.jsonl:6, "
            "in batch 1"),
        ),
        ("sold", "1", None, "sold 1 is there, as batch 2 wrote it: orders 1 is there, and so is customers ada"),
        (
            "sold", "4", 1,
            ("sold 4 is not there: the join with customers is an inner one, and customers eve is not there: no record "
            "of it was ever accepted"),
        ),
        ("sold", "4", None, "sold 4 is there, as batch 3 wrote it: orders 4 is there, and so is customers eve"),
        (
            "sold", "3", 1,
            "sold 3 is not there: the join with customers is an inner one, and its foreign key (customer) is null",
        ),
        (
            "sold", "5", None,
            "sold 5 is not there: orders 5 is not there: taken away by a delete, 2024-01-02.jsonl:2, in batch 2",
        ),
        (
            "kept", "3", None,
            ("kept 3 is there, as batch 3 wrote it: orders 3 is there; without a row of customers, whose columns are "
            "null"),
        ),
        (
            "dear", "1", None,
            ("dear 1 is not there: both sides are there, and the row does not meet the condition of the join: "
            "amount > 15"),
        ),
        (
            "pairs", '["bob", 2]', 1,
            "pairs bob, 2 is there, as batch 1 wrote it: orders 2 is there, and so is customers bob",
        ),
        ("pairs", '["bob", 2]', None, "pairs bob, 2 is not there: orders 2 refers to customers ada now"),
        (
            "board", "3", None,
            ("board 3 is not there: the join with customers is an inner one, and customers cyd is not there: no record "
            "of it was ever accepted"),
        ),
        (
            "board", "1", None,
            "board 1 is there, as batch 2 wrote it: orders 1 is there, and so is customers ada and items pen",
        ),
        (
            "placed", "4", None,
            "placed 4 is there, as batch 3 wrote it: kept 4 is there; without a row of items, whose columns are null",
        ),
        ("by_customer", "ada", None, "by_customer ada is there, as batch 2 wrote it"),
        ("by_customer", "[null]", 1, "by_customer null is there, as batch 1 wrote it"),
        ("by_customer", "bob", None, "by_customer bob is not there: no row of orders is in the group"),
        ("large", "ADA", None, "large ADA is there, as batch 2 wrote it"),
        ("large", "CYD", None, "large CYD is not there: it does not meet its condition: most > 15"),
        ("large", "BOB", None, "large BOB is not there: no row of orders is in the group"),
        (
            "seen", "1", None,
            "seen 1 is there: the event at 2024-01-01.jsonl:1 was joined in batch 1 with a row of items",
        ),
        ("seen", "2", None, "seen 2 is not there: no event in 1 record; the last one is ignored"),
        (
            "seen", "3", None,
            ("seen 3 is not there: the event at 2024-01-01.jsonl:3 met no row of items cup, and the join is an inner "
            "one"),
        ),
        (
            "seen", "4", None,
            ("seen 4 is not there: the event at 2024-01-01.jsonl:4 waits until the stream's time has passed "
            "2024-01-01T09:00:00.000000Z; it is 2024-01-01T08:00:00.000000Z"),
        ),
        (
            "seen", "5", None,
            ("seen 5 is not there: the event at 2024-01-02.jsonl:1 came after its grace period of 1:00:00, and was "
            "dropped as late"),
        ),
        ("clicks", "5", None, "clicks 5: 1 event in 1 record, 1 of them late"),
    ],
)  # fmt: skip
def test_answer_says_why_a_row_is_there_or_not(
    shop: Pipeline, name: str, key: str, batch: int | None, answer: str
) -> None:
    """In one sentence: of tables, joins, stars, groups and streams, as any batch left them."""
    found = explanation(shop, name, key, batch)
    assert found.answer == answer
    assert found.batch == (batch or len(DAYS))


def test_rows_are_there_that_the_tables_have(shop: Pipeline, spark: SparkSession) -> None:
    """The answers agree with each table, after each batch: for every key that any batch has known."""
    results = lakejoin.read(shop.path)
    for name in (
        "orders",
        "customers",
        "sold",
        "kept",
        "dear",
        "pairs",
        "placed",
        "board",
        "by_customer",
        "large",
    ):
        spec = shop.tables[name].spec if name in shop.tables else shop.spec_of_join(name)
        columns = list(spec.key if name in shop.tables else spec.joined_key)
        cuts = {batch: _keys(results.at(batch).arrow(name, columns)) for batch in range(1, len(DAYS) + 1)}
        for key in set[str]().union(*cuts.values()):
            found = {batch: explanation(shop, name, key, batch).found for batch in cuts}
            assert found == {batch: key in keys for batch, keys in cuts.items()}, (name, key)


def _keys(rows: pa.Table) -> set[str]:
    """Keys as they are typed."""
    values = [list(row.values()) for row in rows.to_pylist()]
    return {json.dumps(key) if len(key) > 1 or None in key else str(key[0]) for key in values}


def test_messages_and_answers_tell_how_a_row_moved(shop: Pipeline) -> None:
    """A foreign key that changed: the instruction to the old row, that to the new one, and what was answered."""
    found = said(explanation(shop, "sold", "2"))
    assert (
        "    batch 2: the left row unsubscribes from customers bob, and wants no answer (2024-01-02.jsonl:1)\n"
        "    batch 2: the left row subscribes to customers ada, and wants an answer in any case (2024-01-02.jsonl:1)\n"
        "    batch 2: customers ada answers with its row, of 2024-01-02.jsonl:1, to the message: applied: the result "
        "was made of it"
    ) in found


def test_right_change_is_told_as_the_cause(shop: Pipeline) -> None:
    """An answer that nobody asked for says that its row has changed."""
    found = said(explanation(shop, "sold", "1"))
    assert "customers ada answers with its row, of 2024-01-02.jsonl:1, because it changed: applied" in found


def test_records_that_changed_nothing_say_why(shop: Pipeline) -> None:
    """Out of order, a duplicate, and one in quarantine that may be of the key."""
    assert (
        "batch 2: new or changed row, 2024-01-02.jsonl:3, v 0: out of order: a later one was applied before, so it "
        "changes nothing"
    ) in said(explanation(shop, "orders", "1"))
    assert "2024-01-02.jsonl:5, v 1: duplicate of the one that was applied" in said(
        explanation(shop, "orders", "4")
    )


def test_quarantined_record_is_told_by_the_key_in_its_text(shop: Pipeline) -> None:
    """Its columns were not parsed; another key that has the same digits elsewhere does not name it."""
    found = explanation(shop, "notes", "8")
    assert (
        found.answer
        == "notes 8 is not there: no record of it was ever accepted; 1 in quarantine may be of it"
    )
    assert (
        'in quarantine, 2024-01-02.jsonl:1, its text has this key: type_mismatch (n: "many" is no int)'
        in said(found)
    )
    assert "quarantine" not in said(explanation(shop, "notes", "3"))


@pytest.mark.parametrize(
    ("name", "key", "column", "sentences"),
    [
        (
            "sold", "1", "twice",
            ("twice of sold is 20, computed as amount * 2\n"
            "  amount of orders 1 is 10, since the record at 2024-01-01.jsonl:1, batch 1"),
        ),
        (
            "sold", "1", "customer_city",
            ("customer_city of sold is Lyon\n"
            "  city of customers ada is Lyon, since the record at 2024-01-02.jsonl:1, batch 2"),
        ),
        (
            "placed", "1", "right_city",
            ("right_city of placed is Lyon\n"
            "  right_city of kept is Lyon\n"
            "    city of customers ada is Lyon, since the record at 2024-01-02.jsonl:1, batch 2"),
        ),
        (
            "kept", "3", "right_city",
            ("right_city of kept is null\n"
            "  there is no row of customers to take it from: customers cyd is not there: no record of it was ever "
            "accepted"),
        ),
        ("orders", "2", "item", "item of orders 2 is ink, since the record at 2024-01-01.jsonl:2, batch 1"),
        ("by_customer", "eve", "orders", "orders of by_customer is 1, count(*) of the rows in the group\n"),
        (
            "seen", "1", "right_price",
            "right_price of seen is 1\n  right_price is of the row of items that it met",
        ),
    ],
)  # fmt: skip
def test_column_says_where_its_value_comes_from(
    shop: Pipeline, name: str, key: str, column: str, sentences: str
) -> None:
    """Through select and joins of joins, down to the record that first had it."""
    assert said(explanation(shop, name, key, column=column)).startswith(sentences)


def test_history_tells_what_a_row_was(shop: Pipeline) -> None:
    """Where a result keeps one: each version with its batch."""
    found = said(explanation(shop, "kept", "2"))
    assert ", batch 1: id 2, v 1, customer bob, item ink, amount 20, right_name bob, right_city Rome" in found
    assert (
        " on, batch 2: id 2, v 2, customer ada, item ink, amount 20, right_name ada, right_city Lyon" in found
    )


def test_event_says_which_version_it_met(shop: Pipeline) -> None:
    """The one that was valid at its time, not the newest."""
    assert (
        "  items pen at its time, 2024-01-01T05:00:00.000000Z: from 2024-01-01T00:00:00.000000Z until "
        "2024-01-01T06:00:00.000000Z: 2024-01-01.jsonl:1, batch 1"
    ) in said(explanation(shop, "seen", "1"))


@pytest.mark.parametrize(
    ("name", "key", "sentences"),
    [
        (
            "customers",
            "ada",
            "sold: 2 rows of orders refer to it: 1; 2\n  batch 2: its change reached 1 row\n",
        ),
        ("customers", "bob", "sold: 0 rows of orders refer to it\n"),
        (
            "items",
            "pen",
            "placed: 2 rows of kept refer to it: 1; 3\nboard: 2 rows of orders refer to it: 1; 3\n",
        ),
        ("items", "pen", "seen: 1 event of clicks met it"),
        ("orders", "4", "kept: 4 (batch 3)\n  placed: 4 (batch 3)\n"),
        ("orders", "4", "pairs: eve, 4 (batch 3)\n"),
        ("orders", "4", "large: the row counts in EVE"),
        ("orders", "5", "sold: no row\n"),
        ("large", "ADA", "no result of shop is made of large"),
    ],
)
def test_impact_says_what_is_made_of_a_row(shop: Pipeline, name: str, key: str, sentences: str) -> None:
    """As a left row, as a right one, in groups and in joins of streams; through joins of joins."""
    assert sentences in said(explanation(shop, name, key, impact=True))


def test_raw_text_is_read_where_it_stands(shop: Pipeline) -> None:
    """The very line of the file."""
    found = said(explanation(shop, "clicks", "5", raw=True))
    assert '\n  {"op": "c", "id": 5, "sku": "pen", "kind": "buy", "at": "2024-01-01T06:30:00Z"}' in found


@pytest.mark.parametrize(
    ("name", "place", "answer", "sentences"),
    [
        (
            "orders",
            "2024-01-02.jsonl",
            "orders 2024-01-02.jsonl: 4 records, read in batch 2",
            (
                "applied: 2 records, of 2; 5\n"
                "duplicate: 1 record, of 4\n"
                "out_of_order: 1 record, of 1\n"
                "in quarantine, type_mismatch: 1 record"
            ),
        ),
        (
            "orders",
            "2024-01-02.jsonl:2",
            "orders 5 is not there: taken away by a delete, 2024-01-02.jsonl:2, in batch 2",
            "batch 1: new or changed row, 2024-01-01.jsonl:5",
        ),
        (
            "orders",
            "2024-01-02.jsonl:4",
            'orders 2024-01-02.jsonl:4 is in quarantine since batch 2: type_mismatch (id: "six" is no bigint)',
            '{"op": "u", "id": "six", "v": 1, "customer": "ada", "item": "pen", "amount": 1}',
        ),
        ("orders", "2024-01-02.jsonl:9", "orders 2024-01-02.jsonl:9: no batch has read such a record", ""),
        ("orders", "2024-02-01.jsonl", "orders 2024-02-01.jsonl: no batch has read a record of it", ""),
        (
            "clicks",
            "2024-01-02.jsonl",
            "clicks 2024-01-02.jsonl: 1 record, read in batch 2",
            "late: 1 record, of 5\nin quarantine, late: 1 record",
        ),
    ],
)
def test_record_is_asked_for_by_its_place(
    shop: Pipeline, name: str, place: str, answer: str, sentences: str
) -> None:
    """A line, one that was refused, one that is not there, or a whole file."""
    found = explanation(shop, name, place, record=True)
    assert found.answer == answer
    assert said(found).startswith(sentences)


def test_job_of_dagster_answers_as_the_command_does(shop: Pipeline) -> None:
    """In its log and its metadata; a question without an answer is a failure that says so."""
    job = explain_job(shop)

    def asked(instance: DagsterInstance, **config: Any) -> Any:
        return job.execute_in_process(
            run_config={"ops": {"shop_explain": {"config": config}}}, instance=instance, raise_on_error=False
        )

    with DagsterInstance.ephemeral() as instance:
        done = asked(instance, result="sold", key="2", as_of_batch=2)
        logged = [entry.user_message for entry in instance.all_logs(done.run_id)]
        wrong = asked(instance, result="nobody", key="2")
    (event,) = [event for event in done.all_events if event.event_type_value == "STEP_OUTPUT"]
    found = explanation(shop, "sold", "2", 2)
    assert event.step_output_data.metadata["explanation"].data == found.plain()
    assert [line for line in found.lines() if line not in logged] == []
    assert not wrong.success


def test_status_of_a_batch_says_what_it_did(shop: Pipeline) -> None:
    """Its input, its counts and its stages; and no batch that there is not."""
    call = ["status", str(shop.path), "--batch"]
    shown = CliRunner().invoke(app, [*call, "2"], catch_exceptions=False).stdout
    assert shown.startswith("batch 2 2024-01-02: ")
    assert re.search(r"orders +\S+/orders/2024-01-02.jsonl +5$", shown, re.MULTILINE)
    assert "read/orders" in shown
    told = json.loads(CliRunner().invoke(app, [*call, "2", "--format", "json"]).stdout)
    assert told["tables"]["orders"]["duplicate"] == 1
    assert CliRunner().invoke(app, [*call, "9"]).exit_code == 2


def test_older_records_are_counted(shop: Pipeline) -> None:
    """Of many records the newest are told."""
    found = said(explanation(shop, "notes", "3"))
    assert found.startswith("the row: id 3, n 14\nleft out: 4 older records\n")


def test_record_that_decides_is_told_however_many_came_after_it(shop: Pipeline) -> None:
    """Older records that came later have no effect, and do not hide the one that has."""
    found = explanation(shop, "orders", "20")
    assert found.answer == "orders 20 is there, as the record at 2024-01-01.jsonl:7 made it in batch 1"
    assert "left out: 1 older record\nbatch 1: new or changed row, 2024-01-01.jsonl:7" in said(found)
    assert said(explanation(shop, "orders", "20", column="amount")) == (
        "amount of orders 20 is 1, at least since the record at 2024-01-01.jsonl:7, batch 1"
    )


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("slod", "1"), "no result, table or stream 'slod'; did you mean 'sold'?"),
        (("sold", "one"), "--key 'one': id is bigint, found 'one'"),
        (("pairs", "bob"), "--key 'bob': expected a JSON array of right_name, id"),
        (("sold", "1", 9), "batch 9 is not published; finished batches: 1 to 3"),
        (("sold", "1", None, "twise"), "no column of sold 'twise'; did you mean 'twice'?"),
    ],
)
def test_question_that_has_no_answer_is_refused(shop: Pipeline, asked: tuple[Any, ...], message: str) -> None:
    """With what can be asked."""
    with pytest.raises(WrongUsage, match=re.escape(message)):
        explained(shop, Question(*asked))


def test_command_prints_a_tree_json_or_a_page(shop: Pipeline) -> None:
    """The same sentences in each form; the page is whole and escapes what it shows."""
    call = [str(shop.path), "sold", "--key", "1"]
    tree, as_json, page = (
        CliRunner().invoke(app, ["explain", *call, *form], catch_exceptions=False).stdout
        for form in ([], ["--format", "json"], ["--format", "html"])
    )
    found = explanation(shop, "sold", "1")
    assert tree.splitlines()[0] == f"{found.answer}."
    assert json.loads(as_json) == found.plain()
    assert page.startswith("<!doctype html>")
    for finding in found.findings:
        for depth, text in finding.lines():
            assert f"{'  ' * (depth + 1)}{text}" in tree.splitlines()
            assert escape(text) in page


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("string", 'it\'s \\ "ü" %_'),
        ("long", "-9223372036854775808"),
        ("short", "-3"),
        ("decimal(12,2)", "1.50"),
        ("date", "2024-02-29"),
        ("timestamp", "2024-01-01T00:00:00.000001Z"),
        ("timestamp_ntz", "2024-01-01T00:00:00.000001"),
        ("boolean", "true"),
        ("binary", "it's"),
    ],
)
def test_key_of_every_type_finds_its_row(kind: str, text: str) -> None:
    """In a column, and in the struct of a log."""
    columns = StructType().add("it's", kind)
    key = key_of("--key", text, columns)
    value = pa.array(list(key.values), to_arrow_type(columns[0].dataType, timezone="UTC"))
    rows = pa.table({"it's": value, "held": pa.StructArray.from_arrays([value], ["it's"])})
    with TemporaryDirectory() as folder:
        write_deltalake(folder, rows)
        found = {
            condition: query(f"SELECT * FROM t WHERE {condition}", {"t": DeltaTable(folder)})
            .read_all()
            .num_rows
            for condition in (key.among(["it's"]), key.in_struct("held"))
        }
    assert list(found.values()) == [1, 1]
