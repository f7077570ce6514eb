"""`lakejoin init` as a user types it. What it writes runs unchanged."""

import json
import re
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from hostile.texts import unseen
from lakejoin.orchestration.cli import app, options
from lakejoin.orchestration.config import load
from sample_files import event

EXAMPLE = Path(__file__).parents[3] / "examples" / "flights"
LOAD = """\
id,name,city,changed
1,ann,Paris,2026-11-27 08:00:00.000000
2,bob,Rome,2026-11-27 08:00:00.000000
"""
CHANGES = """\
Op,id,name,city,changed
U,1,ann,Lyon,2026-11-27 09:14:02.000000
D,2,bob,Rome,2026-11-27 09:14:30.000000
I,3,cyd,Oslo,2026-11-27 09:14:59.000000
"""


def lakejoin(*arguments: object, answers: str = "") -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=answers)


def write_orders(folder: Path) -> None:
    """Write orders and their customers, as lines of JSON."""
    for table, rows in {
        "orders": [{"op": "c", "id": n, "customer_id": n % 3} for n in range(9)],
        "customers": [{"op": "c", "id": n, "name": f"n{n}"} for n in range(3)],
    }.items():
        (folder / table).mkdir(parents=True)
        (folder / table / "2026-11-27.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_template_is_written_once(tmp_path: Path) -> None:
    """Beside a file for Git and with the line for editors; a file that is there stays."""
    first = lakejoin("init", tmp_path / "shop")
    path = tmp_path / "shop" / "lakejoin.yaml"
    text = path.read_text()

    assert first.exit_code == 0, first.output
    assert first.stdout.endswith(f"Next: lakejoin validate {path}\n")
    assert lakejoin("validate", path).exit_code == 0
    assert Path(re.fullmatch(r"# yaml-language-server: \$schema=(.+)", text.splitlines()[0])[1]).is_file()
    assert "/lake/" in (path.parent / ".gitignore").read_text()

    again = lakejoin("init", tmp_path / "shop", "--yes")
    assert (again.exit_code, path.read_text()) == (2, text)
    assert f"{path}: is there already" in again.stderr


def test_schema_below_the_folder_is_named_relative_to_it() -> None:
    """As in a folder that has its environment within, whoever has cloned it."""
    from lakejoin.orchestration.cli.init import _editor
    from lakejoin.orchestration.config.docs import reference

    schema = reference.SCHEMA_FILE.resolve()

    assert _editor(schema.parents[1]).endswith(f"$schema={schema.parent.name}/{schema.name}")


def test_gitignore_of_the_user_stays(tmp_path: Path) -> None:
    """What it lacks is said."""
    (tmp_path / ".gitignore").write_text("/lake/\n")

    said = lakejoin("init", tmp_path).stdout

    assert (tmp_path / ".gitignore").read_text() == "/lake/\n"
    assert "is there already; add /.dagster*/ to it" in said


def test_all_that_is_proposed_is_taken(tmp_path: Path) -> None:
    """Files as a shell writes a pattern out, with options before and behind."""
    write_orders(tmp_path)
    files = sorted(tmp_path.rglob("*.jsonl"))

    done = lakejoin("init", tmp_path, "--from", *files, "--yes")

    assert done.exit_code == 0, done.output
    pipeline = load(tmp_path / "lakejoin.yaml")
    assert (list(pipeline.tables), list(pipeline.joins)) == (
        ["customers", "orders"],
        ["orders_with_customers"],
    )
    assert done.stdout.endswith(f"Next: lakejoin run {tmp_path / 'lakejoin.yaml'}\n")


def test_each_proposal_is_asked(tmp_path: Path) -> None:
    """Customers as proposed; orders with another key, at the second try, and an order; no join."""
    write_orders(tmp_path)

    done = lakejoin(
        "init", tmp_path, "--from", tmp_path, answers="y\n\n\ny\nnothing\nid, customer_id\ncustomer_id\nn\n"
    )

    assert done.exit_code == 0, done.output
    assert "no column 'nothing'; known: id, customer_id" in done.stderr
    assert "Join orders_with_customers: 3 of 3 values" in done.output
    pipeline = load(tmp_path / "lakejoin.yaml")
    assert (pipeline.tables["orders"].key, pipeline.tables["orders"].sequence) == (
        ("id", "customer_id"), ("customer_id",),
    )  # fmt: skip
    assert (pipeline.tables["customers"].key, list(pipeline.joins)) == (("id",), [])


def test_tables_may_be_left_out(tmp_path: Path) -> None:
    """Without any nothing is written."""
    write_orders(tmp_path / "in")

    one = lakejoin("init", tmp_path / "one", "--from", tmp_path / "in", answers="n\ny\n\n\n")
    none = lakejoin("init", tmp_path / "none", "--from", tmp_path / "in", answers="n\nn\n")

    assert list(load(tmp_path / "one" / "lakejoin.yaml").tables) == ["orders"], one.output
    assert (none.exit_code, (tmp_path / "none").exists()) == (2, False)


def test_what_cannot_be_looked_into_is_said(tmp_path: Path) -> None:
    """On the terminal and in the file; the rest is proposed."""
    write_orders(tmp_path)
    (tmp_path / "orders" / "x.avro").write_bytes(b"Obj\x01")

    done = lakejoin("init", tmp_path, "--from", tmp_path, "--yes")

    assert done.exit_code == 0, done.output
    assert "x.avro: Avro cannot be looked into without a JVM" in done.stderr
    assert "# Left out: " in (tmp_path / "lakejoin.yaml").read_text()
    missing = lakejoin("init", tmp_path / "new", "--from", tmp_path / "nothing", "--yes")
    assert (missing.exit_code, "not found" in missing.stderr) == (1, True)


def test_nothing_acts_on_the_terminal_or_in_the_file(tmp_path: Path) -> None:
    """Names of files, tables and columns, and questions about them."""
    name = "id\x1b[2J\u202e"
    text = "".join(json.dumps({"op": "c", name: n, "x": 1}) + "\n" for n in range(3))
    source = tmp_path / "in"
    source.mkdir()
    for file in ("rows.jsonl", "red\x1b[31m.jsonl"):
        (source / file).write_text(text)
    folder = tmp_path / "sh\x1bop\u202e"

    asked = lakejoin("init", tmp_path / "one", "--from", source, answers="y\n\n\n")
    taken = lakejoin("init", folder, "--from", source, "--yes")

    for done, path in ((asked, tmp_path / "one"), (taken, folder)):
        assert done.exit_code == 0, done.output
        assert unseen(done.stdout) + unseen(done.stderr) + unseen((path / "lakejoin.yaml").read_text()) == []
        assert load(path / "lakejoin.yaml").tables["rows"].key == (name,)


@pytest.fixture
def _shared_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every command the session of the tests."""
    monkeypatch.setattr(options, "open_session", lambda pipeline, **_: spark)


def rows_of(path: Path, table: str) -> list[dict[str, object]]:
    """Return the rows of a table of the lake."""
    shown = lakejoin("show", path, table, "--format", "jsonl")
    assert shown.exit_code == 0, shown.output
    return [json.loads(line) for line in shown.stdout.splitlines()]


def run(folder: Path, *files: object) -> Path:
    """Propose a file and work off what it declares; no record may be refused."""
    proposed = lakejoin("init", folder, "--from", *files, "--yes")
    assert proposed.exit_code == 0, proposed.output
    path = folder / "lakejoin.yaml"
    ran = lakejoin("run", path)
    assert (ran.exit_code, "could not be accepted" in ran.output) == (0, False), ran.output
    return path


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.usefixtures("_shared_session")
def test_flights_run_as_proposed(tmp_path: Path) -> None:
    """A day of what Debezium recorded, joined as the person who wrote the example joins it."""
    for table in ("flights", "planes"):
        (tmp_path / table).mkdir()
        shutil.copy(EXAMPLE / "data" / table / "2013-01-01.jsonl.gz", tmp_path / table)

    path = run(tmp_path, *sorted(tmp_path.rglob("*.gz")))

    ours, theirs = load(path), load(EXAMPLE / "lakejoin.yaml")
    for table in ("flights", "planes"):
        assert ours.tables[table].key == theirs.tables[table].key
        assert ours.tables[table].columns.keys() | {"engine"} >= theirs.tables[table].columns.keys()
    joined = rows_of(path, "flights_with_planes")
    assert len(joined) == 1782
    assert sum(row["plane_model"] is not None for row in joined) == 1395


@pytest.mark.spark
@pytest.mark.usefixtures("_shared_session")
def test_files_of_dms_run_as_proposed(tmp_path: Path) -> None:
    """The full load and the changes behind it, as its page has them."""
    folder = tmp_path / "dms" / "customers"
    folder.mkdir(parents=True)
    (folder / "LOAD00000001.csv").write_text(LOAD)
    (folder / "20261127-091500000.csv").write_text(CHANGES)

    path = run(tmp_path, tmp_path / "dms")

    assert rows_of(path, "customers") == [
        {"id": 1, "name": "ann", "city": "Lyon", "changed": "2026-11-27T09:14:02.000000Z"},
        {"id": 3, "name": "cyd", "city": "Oslo", "changed": "2026-11-27T09:14:59.000000Z"},
    ]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.usefixtures("_shared_session")
def test_dump_of_kafka_runs_as_proposed(tmp_path: Path) -> None:
    """Two topics in a file, as kcat writes them, with values in strings and a tombstone."""
    rows = [
        *[("customers", "c", {"id": n, "name": f"n{n}", "since": 20_000 + n}) for n in (1, 2)],
        *[
            ("orders", "c", {"id": n, "customer_id": n, "amount": f"{n}.50", "placed": 1793520000000})
            for n in (1, 2)
        ],
        ("orders", "u", {"id": 1, "customer_id": 2, "amount": "9.25", "placed": 1793520000000}),
    ]
    dumped: list[dict[str, object]] = [
        {
            "topic": f"shop.public.{table}", "partition": 0, "offset": place, "tstype": "create", "ts": 1793520000000,
            "key": json.dumps({"id": row["id"]}),
            "payload": json.dumps(event(table, row, op, connector="postgresql", lsn=place)),
        }
        for place, (table, op, row) in enumerate(rows, 1)
    ]  # fmt: skip
    dumped.append(
        {"topic": "shop.public.orders", "partition": 0, "offset": 9, "key": '{"id":5}', "payload": None}
    )
    (tmp_path / "dump.jsonl").write_text("".join(json.dumps(record) + "\n" for record in dumped))

    path = run(tmp_path, tmp_path / "dump.jsonl")

    assert rows_of(path, "orders_with_customers") == [
        {"id": 1, "customer_id": 2, "amount": "9.25", "placed": "2026-11-01T08:00:00.000000",
         "customers_id": 2, "customers_name": "n2", "customers_since": "2024-10-06"},
        {"id": 2, "customer_id": 2, "amount": "2.50", "placed": "2026-11-01T08:00:00.000000",
         "customers_id": 2, "customers_name": "n2", "customers_since": "2024-10-06"},
    ]  # fmt: skip
