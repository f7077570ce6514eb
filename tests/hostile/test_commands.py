"""Every command, and a run in Dagster, over a source whose names, keys and bad records act on what shows them."""

import csv
import io
import json
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from dagster import DagsterInstance
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from faults.shop import make_pipeline, write_lines
from hostile.texts import NAMES, TEXTS, unseen
from lakejoin.orchestration.cli import app, options
from lakejoin.orchestration.cli.quarantine import quarantine
from lakejoin.orchestration.defs.code_location import pipeline_definitions
from lakejoin.orchestration.defs.embedded_pipeline import EmbeddedPipeline
from lakejoin.storage.lake.layout import PUBLISHED, Lake, joined_of

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FOLDER = "in\x1b[2J\u202e[red]`b`<i>"
ESCAPED = r"in\x1b[2J\u202e[red]`b`<i>"
COLUMN = "col\x1b[2J\u202e<b>`|"
KEYS = [text for text in TEXTS if text != "\ud800"]
BAD = [
    *[f"no JSON {text}".replace("\n", " ").replace("\r", " ") for text in KEYS],
    json.dumps({"op": TEXTS[0], "k": "a"}),
]
CONFIGURATION = {
    "name": "hostile",
    "lake": "./lake",
    "tables": {
        "orders": {
            "source": {"format": "jsonl", "path": "orders/*/*"},
            "columns": {"k": "string", "city": "string", "note": "string"},
            "key": ["k"],
        },
        "cities": {
            "source": {"format": "jsonl", "path": "cities/*"},
            "columns": {"city": "string", "name": "string"},
            "key": ["city"],
        },
    },
    "joins": {
        "placed": {
            "left": "orders",
            "right": "cities",
            "foreign_key": ["city"],
            "how": "left",
            "changelog": True,
        }
    },
}
LOST = "k LIKE '%script%' OR k LIKE '%2J%'"
"""Two keys, whose joined rows are deleted by hand."""
ELSEWHERE = {
    "demo": "prints rows, differences and checks as the others do; see test_sinks",
    "init": "makes the file that the others need; see test_init",
    "doctor": "reads no source, and prints no name of one; see test_doctor",
    "warm": "reads no source, and prints no name of one; see test_warm",
}


@pytest.fixture(autouse=True)
def _shared_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every command the session of the tests."""
    monkeypatch.setattr(options, "open_session", lambda pipeline, **_: spark)


def make_source(folder: Path) -> Path:
    """Write the pipeline; every file of orders has a name, and rows with keys and values, that act on a screen."""
    for part, name in enumerate(NAMES):
        keys = [n for n in range(len(KEYS)) if n % len(NAMES) == part]
        rows = [{"op": "c", "k": KEYS[n], "city": KEYS[n], "note": KEYS[n], COLUMN: 1} for n in keys]
        write_lines(folder / "orders" / FOLDER / name, [*rows, *BAD[part :: len(NAMES)]])
    cities = [*KEYS[1:], f"nobody's {KEYS[0]}"]
    write_lines(folder / "cities" / "1.jsonl", [{"op": "c", "city": key, "name": key} for key in cities])
    return make_pipeline(folder, yaml.safe_dump(CONFIGURATION)).path


def lakejoin(*arguments: object) -> Result:
    """Run a command in this process, and see that nothing that it shows acts or hides."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert unseen(result.stdout) == [], arguments
    assert unseen(result.stderr) == [], arguments
    tried.add(" ".join(str(a) for a in arguments[: 1 + (arguments[0] == "quarantine")]))
    return result


tried: set[str] = set()


def commands() -> set[str]:
    """The names of all commands there are."""
    names = {
        command.name or command.callback.__name__ for command in app.registered_commands if command.callback
    }
    below = {
        command.name or command.callback.__name__
        for command in quarantine.registered_commands
        if command.callback
    }
    return names | {f"quarantine {name}" for name in below}


def test_no_command_shows_what_acts_on_a_terminal(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them in the order of a pipeline's life, to the rows that a rule finds and the errors of a source."""
    path = make_source(tmp_path)
    monkeypatch.setattr(os, "execve", lambda *_: None)

    see_what_waits(path)
    ran = lakejoin("run", path)
    assert (ran.exit_code, f"{len(BAD)} records could not be accepted" in ran.stdout) == (0, True), ran.output
    see_rows(path)
    see_unit_tests(path)
    for work in (
        ("quarantine", "retry", path),
        ("migrate", path),
        ("maintain", path, "--dry-run"),
        ("maintain", path, "--all"),
        ("repair", path),
        ("dev", path, "--home", tmp_path / FOLDER),
    ):
        assert lakejoin(*work).exit_code == 0, work
    taken_back = f"{FOLDER}/{NAMES[0]}:1"
    assert lakejoin("quarantine", "add", path, "orders", "--record", taken_back).exit_code == 0
    assert r"\x1b[2J" in lakejoin("diff", f"{path}@1", path, "orders").stdout
    assert lakejoin("reconcile", path, "orders").exit_code == 2
    see_errors(path)
    see_offending_rows(path, spark)

    assert tried | ELSEWHERE.keys() == commands()


def see_what_waits(path: Path) -> None:
    """Before the first run: names of files and of a column that is not declared; in JSON they are exact."""
    waits = rf"from {ESCAPED}/a\x1b[2J\x1b[31mred.jsonl on"
    assert lakejoin("validate", path).exit_code == 0
    assert waits in lakejoin("run", path, "--dry-run").stdout
    waiting = lakejoin("status", path).stdout
    assert waits in waiting
    assert r"col\x1b[2J\u202e<b>`|" in waiting
    told = json.loads(lakejoin("status", path, "--format", "json").stdout)
    files = [waits["file"] for waits in told["waiting"] if waits["table"] == "orders"]
    assert files == [f"{FOLDER}/{name}" for name in sorted(NAMES)]


def see_rows(path: Path) -> None:
    """Keys, values, positions, bad records: a line each."""
    for table in ("orders", "orders.changes", "placed", "placed.response_log", "quarantine"):
        shown = lakejoin("show", path, table, "--internal", "--limit", 1000)
        assert r"\x1b[2J" in shown.stdout, table
    assert r"\x1b[2J" in lakejoin("show", path, "orders", "--key", TEXTS[0]).stdout
    for form in ("tree", "html"):
        why = lakejoin("explain", path, "placed", "--key", TEXTS[0], "--format", form)
        assert r"\x1b[2J" in why.stdout, form
    assert "placed" in lakejoin("metrics", path).stdout
    assert "batches" in lakejoin("status", path, "--trend").stdout
    assert "placed" in lakejoin("verify", path).stdout
    assert "placed" in lakejoin("certify", path, "--into", path.with_suffix(".json")).stdout
    assert r"\x1b[2J" in lakejoin("dangling", path, "placed").stdout
    assert r"\u202e" in lakejoin("references", path, "placed").stdout
    assert r"\x1b[2J" in lakejoin("references", path, "placed", "--unreferenced").stdout
    listed = lakejoin("quarantine", "list", path, "--limit", 1000).stdout
    assert len(listed.splitlines()) == len(BAD) + 1
    assert rf"{ESCAPED}/c\u202egnp.jsonl" in listed


def see_unit_tests(path: Path) -> None:
    """Their names, what they expect, what came, and how."""
    text = '"name\\e[2J": {given: {orders: [{k: "key\\e[2J"}]}, expect: {orders: [{k: "other\\e[2J"}]}}\n'
    path.with_name(f"{path.stem}_tests.yaml").write_text(text)
    failed = lakejoin("test", path)
    assert failed.exit_code == 1, failed.output
    assert r"FAILED name\x1b[2J" in failed.stdout
    assert r"No record of orders other\x1b[2J" in failed.stdout or r"other\x1b[2J is" in failed.stdout, (
        failed.stdout
    )


def see_offending_rows(path: Path, spark: SparkSession) -> None:
    """Rows that somebody deleted, on the terminal and in Data Docs."""
    lose_rows(Lake(str(path.parent / "lake")), spark)
    checked = lakejoin("check", path, "--full")
    assert (checked.exit_code, "VIOLATED" in checked.stdout) == (1, True), checked.output
    pages = [page.read_text() for page in (path.parent / "lake" / "_data_docs").rglob("*.html")]
    assert len(pages) > 2
    assert [unseen(page.replace("\xa0", " ").expandtabs()) for page in pages] == [[]] * len(pages)
    assert [page for page in pages if "<script>alert" in page or "<img src=x" in page] == []
    assert any("&lt;script&gt;alert" in page for page in pages)


def see_errors(path: Path) -> None:
    """A file that changed, and one that is refused: one line each."""
    folder = path.parent / "orders" / FOLDER
    change(folder)
    refused = lakejoin("run", path)
    assert (refused.exit_code, ESCAPED in refused.stderr) == (1, True), refused.output
    assert len(refused.stderr.splitlines()) == 1
    (folder / "x\x1b[2J:.jsonl").write_text("{}\n")
    assert r"cannot be told" in lakejoin("status", path).stdout


def lose_rows(lake: Lake, spark: SparkSession) -> None:
    """Delete joined rows, and let readers see the table without them."""
    joined = joined_of("placed")
    spark.sql(f"DELETE FROM delta.`{lake.path(joined)}` WHERE {LOST}")
    newest = lake.versions([joined])[joined]
    newer = f"transform_values(versions, (k, v) -> if(k = '{joined}', {newest}L, v))"
    spark.sql(f"UPDATE delta.`{lake.path(PUBLISHED)}` SET versions = {newer}")


def change(folder: Path) -> None:
    """Put a line before what was read of a file."""
    changed = folder / NAMES[0]
    changed.write_text("{}\n" + changed.read_text())


def test_data_for_programs_are_exact(tmp_path: Path) -> None:
    """CSV, JSON lines and JSON give every text as it is in the source."""
    path = make_source(tmp_path)
    invoke = CliRunner().invoke
    assert lakejoin("run", path).exit_code == 0

    as_csv = invoke(app, ["show", str(path), "orders", "--format", "csv"]).stdout_bytes.decode()
    as_json = invoke(app, ["show", str(path), "orders", "--format", "jsonl"]).stdout_bytes.decode()

    assert sorted(row["k"] for row in csv.DictReader(io.StringIO(as_csv, newline=""))) == sorted(KEYS)
    assert sorted(json.loads(line)["k"] for line in as_json.split("\n") if line) == sorted(KEYS)


@pytest.fixture
def instance() -> Iterator[DagsterInstance]:
    """Return a Dagster that remembers nothing later."""
    with DagsterInstance.ephemeral() as one:
        yield one


def test_run_in_dagster_shows_nothing_that_acts(
    tmp_path: Path, spark: SparkSession, instance: DagsterInstance, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its log, events, metadata and descriptions; values that programs read are numbers and names as before."""
    from lakejoin.orchestration.config import load

    pipeline = load(make_source(tmp_path))
    lake = Lake(pipeline.lake)
    job = pipeline_definitions(EmbeddedPipeline(pipeline), datetime.now(UTC)).resolve_job_def("hostile_job")
    assert job.execute_in_process(instance=instance).success
    change(tmp_path / "orders" / FOLDER)
    refused = job.execute_in_process(instance=instance, raise_on_error=False)
    lose_rows(lake, spark)
    known = job.asset_layer.asset_graph.asset_check_keys
    keys = {key for key in known if key.asset_key.path == ["hostile", "placed"]}
    checks = job.get_subset(asset_check_selection=keys, asset_selection=set())
    failed = checks.execute_in_process(instance=instance, raise_on_error=False)

    evaluations = [event for event in failed.get_asset_check_evaluations() if not event.passed]
    assert evaluations, [str(event.event_specific_data) for event in failed.all_events if event.is_failure]
    (lost,) = evaluations
    assert lost.metadata["offending_rows"].value == 2
    rows = lost.metadata["sample"].value.records  # type: ignore[union-attr]
    assert any(r"\u001b[2J" in str(row.data) for row in rows)
    assert not refused.success
    (event,) = refused.filter_events(lambda event: event.is_step_failure)
    assert r"in\x1b[2J\u202e[red]" in str(event.step_failure_data.user_failure_data.description)
    said = capfd.readouterr()
    for result in (failed, refused):
        for one in result.all_events:
            assert [text for text in _texts(one) if unseen(text)] == [], one.event_type
    assert "\x1b[2J" not in said.out + said.err
    assert set(unseen(re.sub(r"\x1b\[\d*m", "", said.out + said.err))) <= {"\t"}


def _texts(value: object) -> Iterator[str]:
    """Every text of an event of Dagster's, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, found in value.items():
            yield from (*_texts(key), *_texts(found))
    elif isinstance(value, list | tuple | set | frozenset):
        if hasattr(value, "_asdict"):
            # a record of Dagster's is a tuple that cannot be iterated
            yield from _texts({name: getattr(value, name) for name in value._fields})
        else:
            for found in value:
                yield from _texts(found)
    elif hasattr(value, "__dict__"):
        yield from _texts(vars(value))


def test_folder_of_the_configuration_is_shown_printable(tmp_path: Path) -> None:
    """Commands that name the file, the lake or a source that has no files."""
    folder = tmp_path / "sh\x1bc\u202eop"
    path = make_pipeline(folder, yaml.safe_dump(CONFIGURATION)).path
    for table in ("orders", "cities"):
        (folder / table).mkdir()

    for command in ("validate", "status", "run", "repair"):
        said = lakejoin(command, path)
        assert (said.exit_code, command == "repair" or r"sh\x1bc\u202eop" in said.output) == (0, True), (
            said.output
        )
    path.write_text(path.read_text().replace("foreign_key", "foreign_keys"))
    wrong = lakejoin("validate", path)
    assert (wrong.exit_code, r"sh\x1bc\u202eop" in wrong.stderr) == (2, True)
