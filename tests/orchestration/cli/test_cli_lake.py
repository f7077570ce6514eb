"""Commands that work on a lake, as a user types them; all share the session of the tests."""

import csv
import io
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from lakejoin.orchestration.cli import app, options
from lakejoin.orchestration.config import load
from lakejoin.orchestration.demo.example import Example
from lakejoin.storage.errors import LakeInconsistent
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.lake.lock import writing

pytestmark = pytest.mark.spark

PIPELINE = """\
name: shop
lake: ./lake
tables:
  lines:
    source: {format: jsonl, path: "lines/{date}.jsonl"}
    columns: {order_id: bigint, line: int, sku: string, price: "decimal(12,2)"}
    key: [order_id, line]
  products:
    source: {format: jsonl, path: "products/{date}.jsonl"}
    columns: {sku: string, name: string}
    key: [sku]
joins:
  lines_with_products: {left: lines, right: products, foreign_key: [sku], how: left, changelog: true}
"""
ADDED = "  cheap: {left: lines, right: products, foreign_key: [sku], how: inner}\n"
FIRST = """\
{"op": "c", "order_id": 1, "line": 1, "sku": "A", "price": "9.50"}
{"op": "c", "order_id": 1, "line": 2, "sku": "B", "price": "3.00"}
{"op": "c", "order_id": 2, "line": 1, "sku": null, "price": "a lot"}
"""


@pytest.fixture(autouse=True)
def _shared_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every command the session of the tests."""
    monkeypatch.setattr(options, "open_session", lambda pipeline, **_: spark)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Return a pipeline with one day of input, of which a record is bad."""
    return make_shop(tmp_path)


@pytest.fixture(scope="module")
def first_day(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a pipeline whose first day is worked off; nobody may change it."""
    folder = tmp_path_factory.mktemp("shop")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(options, "open_session", lambda pipeline, **_: spark)
        assert lakejoin("run", make_shop(folder)).exit_code == 0
    return folder


@pytest.fixture
def ran(first_day: Path, tmp_path: Path) -> Path:
    """Return a copy of it."""
    shutil.copytree(first_day, tmp_path, dirs_exist_ok=True)
    return tmp_path / "lakejoin.yaml"


def make_shop(folder: Path) -> Path:
    """Write the pipeline and its first day."""
    for name in ("lines", "products"):
        (folder / name).mkdir()
    (folder / "lines" / "2024-01-01.jsonl").write_text(FIRST)
    (folder / "products" / "2024-01-01.jsonl").write_text('{"op": "c", "sku": "A", "name": "Apple"}\n')
    (folder / "lakejoin.yaml").write_text(PIPELINE)
    return folder / "lakejoin.yaml"


def lakejoin(*arguments: object) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def csv_rows(result: Result) -> list[list[str]]:
    """Return the rows that a command printed as csv, with the header."""
    assert result.exit_code == 0, result.output
    return list(csv.reader(io.StringIO(result.stdout_bytes.decode(), newline="")))


def test_first_steps(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run, run again, look at status, rows, quarantine and an earlier batch, check: what a new user tries."""
    (shop.parent / "products" / "2024-01-02.jsonl").write_text('{"op": "c", "sku": "B", "name": "Banana"}\n')
    first = lakejoin("run", shop, "--batch-by", "date", "--batches", "1")
    assert first.exit_code == 0
    assert first.stdout.startswith("batch 1 2024-01-01: 4 records, 2 joined rows changed\nRecords by table\n")
    assert "Seconds by stage" in first.stdout
    assert first.stdout.endswith(f"\n1 record could not be accepted: `lakejoin quarantine list {shop}`\n")

    with monkeypatch.context() as patch:
        patch.setattr(options, "open_session", lambda pipeline, **_: pytest.fail("a session was asked for"))
        status = lakejoin("status", shop).stdout
        assert "Nothing pending" in lakejoin("run", shop, "--to", "2024-01-01").stdout
    assert "shop: 1 finished batch in" in status
    assert "last cut: batch 1 2024-01-01" in status
    assert "table products: 1 of 2 files wait, from 2024-01-02.jsonl on" in status
    assert re.search(r"lines +type_mismatch +1\n", status)

    assert lakejoin("run", shop).stdout.startswith("batch 2 2024-01-02: 1 records, 1 joined rows changed\n")
    header = ["order_id", "line", "sku", "price", "right_sku", "right_name"]
    now = csv_rows(lakejoin("show", shop, "lines_with_products", "--format", "csv"))
    assert now == [header, ["1", "1", "A", "9.50", "A", "Apple"], ["1", "2", "B", "3.00", "B", "Banana"]]
    then = csv_rows(lakejoin("show", shop, "lines_with_products", "--format", "csv", "--as-of-batch", "1"))
    assert then[2] == ["1", "2", "B", "3.00", r"\N", r"\N"]
    record = json.loads(lakejoin("show", shop, "quarantine", "--format", "jsonl").stdout)
    assert (record["file"], record["line"], record["reason"]) == ("2024-01-01.jsonl", 3, "type_mismatch")
    assert json.loads(record["raw"])["price"] == "a lot"

    checked = lakejoin("check", shop)
    assert checked.exit_code == 0, checked.output
    assert "Rules over the rows that batch 2 touched" in checked.stdout
    assert (shop.parent / "lake" / "_data_docs" / "index.html").exists()


def test_run_tells_which_files_it_left_to_settle(shop: Path) -> None:
    """As the dry run said before it; one that is old enough by then is read."""
    shop.write_text(shop.read_text().replace('/{date}.jsonl"', '/{date}.jsonl", settle: 1 hour'))
    for name in ("lines", "products"):
        os.utime(shop.parent / name / "2024-01-01.jsonl", (0, 0))
    (shop.parent / "products" / "2024-01-02.jsonl").write_text('{"op": "c", "sku": "B", "name": "Banana"}\n')
    left = "1 file left to settle, changed less than `settle` ago\n"

    dry = lakejoin("run", shop, "--dry-run").stdout
    said = lakejoin("run", shop).stdout

    assert left in dry
    assert "2024-01-02" not in dry
    assert said.startswith("batch 1 2024-01-01: 4 records")
    assert left in said
    assert "batch 2" not in said


def test_composite_keys_are_json_arrays(ran: Path) -> None:
    """Logs show them as one value, and `--key` takes one."""
    log = csv_rows(lakejoin("show", ran, "lines_with_products.subscription_log", "--format", "csv"))
    assert [row[:2] for row in log] == [["foreign_key", "primary_key"], ["A", "[1,1]"], ["B", "[1,2]"]]
    found = lakejoin("show", ran, "lines_with_products.response_log", "--format", "jsonl", "--key", "[1, 2]")
    assert [json.loads(line)["primary_key"] for line in found.stdout.splitlines()] == [[1, 2]]
    rows = csv_rows(lakejoin("show", ran, "lines", "--format", "csv", "--key", '["1", 2]'))
    assert [row[:2] for row in rows] == [["order_id", "line"], ["1", "2"]]


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("7", "the key of lines is a JSON array of order_id, line"),
        ("[1]", "the key of lines is a JSON array of order_id, line"),
        ('[1, "two"]', "line is int, found 'two'"),
    ],
)
def test_key_that_does_not_fit_is_refused(ran: Path, key: str, message: str) -> None:
    """The message says what a key looks like."""
    result = lakejoin("show", ran, "lines", "--key", key)

    assert result.exit_code == 2
    assert message in result.stderr


def test_changelog_holds_every_emission(ran: Path) -> None:
    """It is shown for a join that keeps it, internal columns on request."""
    rows = csv_rows(lakejoin("show", ran, "lines_with_products.changelog", "--format", "csv", "--internal"))

    assert [row[:2] for row in rows] == [["order_id", "line"], ["1", "1"], ["1", "2"]]
    assert {"_lj_batch", "_lj_tombstone", "redundant"} <= set(rows[0])


def test_check_shows_the_rows_that_offend(ran: Path, spark: SparkSession) -> None:
    """A row that somebody took out of the joined table is found, by its key, and the exit code is 1."""
    lake, joined = ran.parent / "lake", "joins/lines_with_products/joined"
    spark.sql(f"DELETE FROM delta.`{lake / joined}` WHERE line = 2")
    # A check looks at what is published, which is the version before.
    newer = f"transform_values(versions, (k, v) -> if(k = '{joined}', v + 1L, v))"
    spark.sql(f"UPDATE delta.`{lake / '_published'}` SET versions = {newer}")

    result = lakejoin("check", ran, "--full")

    assert result.exit_code == 1
    assert re.search(r"lines_with_products +nothing_pending +VIOLATED +1\n", result.stdout)
    assert '"primary_key":{"order_id":1,"line":2}' in result.stdout


def test_dangling_foreign_keys_and_references_are_shown(ran: Path) -> None:
    """Of the two products that lines refer to one is there; a line that is a composite key is an array."""
    dangling = lakejoin("dangling", ran, "lines_with_products")
    assert dangling.stdout.splitlines() == [
        "foreign_key  left_rows  left_key",
        "B                    1  [1,2]",
    ]
    told = lakejoin("dangling", ran, "lines_with_products", "--format", "jsonl", "--as-of-batch", 1)
    assert json.loads(told.stdout) == {"foreign_key": "B", "left_rows": 1, "left_key": [1, 2]}
    assert csv_rows(lakejoin("references", ran, "lines_with_products", "--format", "csv")) == [
        ["right_key", "left_rows"],
        ["A", "1"],
    ]
    none = lakejoin("references", ran, "lines_with_products", "--unreferenced")
    assert none.stdout == "lines_with_products's list of unreferenced right keys has no such rows.\n"


@pytest.mark.parametrize(("allowed", "code", "result"), [("50 %", 0, "within"), ("0.49", 1, "EXCEEDED")])
def test_check_fails_where_more_foreign_keys_dangle_than_may(
    ran: Path, allowed: str, code: int, result: str
) -> None:
    """The share is declared after the first batch: the lake goes on with it, and no rule is broken."""
    ran.write_text(PIPELINE.replace("how: left", f"how: left, max_dangling: {allowed}"))

    assert "Nothing pending" in lakejoin("run", ran).stdout
    checked = lakejoin("check", ran)

    assert checked.exit_code == code, checked.output
    assert re.search(rf"lines_with_products +2 +1 +50\.00% +<= (50|49) % +{result}\n", checked.stdout)
    assert "VIOLATED" not in checked.stdout


def test_join_that_no_run_has_begun_has_no_references(ran: Path) -> None:
    """All its right rows would seem to be referred to by nobody."""
    ran.write_text(PIPELINE.rstrip("\n") + "\n" + ADDED)

    refused = lakejoin("references", ran, "cheap", "--unreferenced")

    assert refused.exit_code == 2
    assert "cheap: batch 1 has not begun the join; `lakejoin run " in refused.stderr


@pytest.mark.bad_input(44)
def test_source_that_changed_fails_the_run(ran: Path) -> None:
    """A file that was read may only grow; the message says which, the exit code is that of a failed batch."""
    (ran.parent / "lines" / "2024-01-01.jsonl").write_text(FIRST.replace("9.50", "9.55"))

    result = lakejoin("run", ran)

    assert result.exit_code == 1
    assert "2024-01-01.jsonl: changed after it was read" in result.stderr
    assert "Traceback" not in result.output


def test_input_of_which_too_much_is_bad_is_not_planned(shop: Path) -> None:
    """Until a plan is committed the file can be corrected; no table is made for what was refused."""
    text = "key: [order_id, line]\n    max_bad_ratio: "
    shop.write_text(PIPELINE.replace("key: [order_id, line]\n", f"{text}0.3\n"))

    refused = lakejoin("run", shop)

    assert refused.exit_code == 1
    assert "table lines: 1 of 3 new records (33.3%) cannot be read: 1 type_mismatch" in refused.stderr
    assert "the first in 2024-01-01.jsonl:3 (" in refused.stderr
    assert "max_bad_ratio" in refused.stderr
    assert "Traceback" not in refused.output
    assert [path.name for path in (shop.parent / "lake").iterdir()] == ["_lock"]

    (shop.parent / "lines" / "2024-01-01.jsonl").write_text(FIRST.replace("a lot", "7.00"))
    assert lakejoin("run", shop).stdout.startswith("batch 1 2024-01-01: 4 records, 3 joined rows changed\n")


def test_changed_configuration_is_refused(ran: Path) -> None:
    """A lake that was built with another kind of join is not continued; that is wrong configuration."""
    ran.write_text(PIPELINE.replace("how: left", "how: inner"))

    result = lakejoin("run", ran)

    assert result.exit_code == 2
    assert ":13: joins.lines_with_products.how: changed since batch 1" in result.stderr
    assert lakejoin("run", ran, "--dry-run").exit_code == 2


def test_dry_run_does_not_promise_what_a_run_refuses(ran: Path) -> None:
    """A join whose tables are there from an earlier time must be computed anew."""
    joins = ran.parent / "lake" / "joins"
    shutil.copytree(joins / "lines_with_products", joins / "cheap")
    ran.write_text(PIPELINE.rstrip("\n") + "\n" + ADDED)
    for asked in (["--dry-run"], []):
        refused = lakejoin("run", ran, *asked)
        assert refused.exit_code == 2
        assert "joins.cheap" in refused.stderr
        assert "--rebuild cheap" in refused.stderr
    assert "begin join cheap" in lakejoin("run", ran, "--rebuild", "cheap", "--dry-run").stdout
    assert "join cheap is not kept up to date: `lakejoin run " in lakejoin("status", ran).stdout


def test_check_leaves_out_a_join_that_no_run_has_begun(ran: Path) -> None:
    """It breaks no rule, and is named."""
    ran.write_text(PIPELINE.rstrip("\n") + "\n" + ADDED)

    result = lakejoin("check", ran, "--full")

    assert result.exit_code == 0, result.stdout
    assert (
        "cheap: not checked; it was declared since: `lakejoin run` begins with it, or says" in result.stdout
    )
    assert "lines_with_products" in result.stdout


def test_join_that_is_no_longer_declared_is_reported(ran: Path) -> None:
    """Its tables stay, and status says so."""
    ran.write_text(PIPELINE.partition("joins:")[0])

    assert "join lines_with_products is in the lake and no longer declared" in lakejoin("status", ran).stdout
    shutil.rmtree(ran.parent / "lake" / "joins")
    assert "lines_with_products" not in lakejoin("status", ran).stdout


@pytest.mark.slow
def test_demo_equals_postgresql(copy_tiny: Callable[[Path], Path], tmp_path: Path) -> None:
    """Each day the joins and groups are compared; the last line says that all are equal."""
    result = lakejoin("demo", "--example", copy_tiny(tmp_path))

    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1] == "equal to PostgreSQL: 12 of 12"
    assert "  flights_with_planes: 43 rows, 26 columns, 0 differences" in result.stdout
    assert "  flights_with_planes_inner: 30 rows, 20 columns, 0 differences" in result.stdout
    assert "_data_docs/index.html" in result.stdout
    assert "lakejoin dev" in result.stdout


@pytest.mark.slow
def test_demo_names_the_one_cell_that_differs(copy_tiny: Callable[[Path], Path], tmp_path: Path) -> None:
    """With one altered cell in a copy of the answers the demo fails, and says which row and column it is."""
    answer = copy_tiny(tmp_path) / "data" / "expected" / "2013-03-02" / "inner_join.csv"
    answer.write_text(alter(answer.read_text()))
    for day in ("2013-03-03",):
        shutil.rmtree(tmp_path / "data" / "expected" / day)
        for topic in ("flights", "planes", "weather"):
            (tmp_path / "data" / topic / f"{day}.jsonl").unlink()

    result = lakejoin("demo", "--example", tmp_path)

    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1] == "equal to PostgreSQL: 7 of 8"
    assert "32 rows, 21 columns, 1 differences" in result.stdout
    assert "flight_id 101: carrier is" in result.stdout


def alter(text: str) -> str:
    """Return the answers with another carrier for flight 101."""
    header, row, rest = text.split("\n", maxsplit=2)
    assert header.startswith("flight_id,carrier,")
    number, _, others = row.split(",", maxsplit=2)
    assert number == "101"
    return "\n".join([header, f"{number},XX,{others}", rest])


def test_show_for_people_fits_a_line_each(tiny: Example, read: object) -> None:
    """A line is a row, so line breaks within a value are escaped; the last line says that there is more."""
    result = lakejoin("show", tiny.pipeline.path, "planes", "--limit", "3")

    lines = result.stdout.splitlines()
    assert lines[0].split() == list(tiny.pipeline.tables["planes"].columns)
    assert len(lines) == 5
    assert lines[-1] == "The first 3 rows of planes; --limit shows more, --format csv all."
    text = lakejoin("show", tiny.pipeline.path, "planes", "--key", "N9TEXT").stdout
    assert r"line\nbreak" in text


def test_show_writes_a_file_only_when_it_is_complete(tiny: Example, read: object, tmp_path: Path) -> None:
    """What stood there before stays if the command fails."""
    output = tmp_path / "rows.csv"
    output.write_text("before")

    failed = lakejoin(
        "show",
        tiny.pipeline.path,
        "planes",
        "--where",
        "1 / (seats - seats) > 0",
        "--output",
        output,
        "--format",
        "csv",
    )
    assert failed.exit_code == 2
    assert "--where" in failed.stderr
    assert output.read_text() == "before"

    assert (
        lakejoin("show", tiny.pipeline.path, "planes", "--output", output, "--format", "csv").exit_code == 0
    )
    assert len(list(csv.reader(io.StringIO(output.read_text(), newline="")))) == 11
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]


def test_maintain_says_what_it_could_do_and_does_it_when_told_to(
    ran: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A young lake needs nothing, and no session is asked for; on demand all is done, and then there is no more."""
    with monkeypatch.context() as patch:
        patch.setattr(options, "open_session", lambda pipeline, **_: pytest.fail("a session was asked for"))
        found = lakejoin("maintain", ran, "--dry-run")
        assert found.exit_code == 0
        assert re.search(r"fold +tables/lines/rows +no +1 batches with 2 rows behind 2\n", found.stdout)
        assert lakejoin("maintain", ran).stdout.startswith("Nothing is due;")
    before = csv_rows(lakejoin("show", ran, "lines_with_products", "--format", "csv"))

    done = lakejoin("maintain", ran, "--all")

    assert done.exit_code == 0, done.output
    assert re.search(r"fold +tables/lines/rows +1 +0\.0 +0\.0\n", done.stdout), done.stdout
    assert csv_rows(lakejoin("show", ran, "lines_with_products", "--format", "csv")) == before
    assert "Nothing could be done" in lakejoin("maintain", ran, "--dry-run").stdout
    assert lakejoin("check", ran).exit_code == 0


def test_maintain_leaves_the_rest_for_later_when_a_batch_works(ran: Path) -> None:
    """It says so, and waits for nobody."""
    with writing(Lake(load(ran).lake)):
        done = lakejoin("maintain", ran, "--all")
    assert done.exit_code == 0
    assert re.match(r"left for later: fold tables/lines/rows: .* is being written by process", done.stdout)


def test_maintain_fails_where_a_step_does(ran: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are done; what is scheduled must not fail in silence."""

    def fail(path: str, _: object) -> None:
        raise LakeInconsistent(f"{path}: is damaged")

    monkeypatch.setattr("lakejoin.orchestration.maintenance.steps.condense", fail)

    done = lakejoin("maintain", ran, "--all")

    assert done.exit_code == 1
    assert re.search(
        r"^failed: condense _maintenance: .*_maintenance: is damaged$", done.stdout, re.MULTILINE
    )
    assert "fold" in done.stdout.partition("failed: ")[0]
