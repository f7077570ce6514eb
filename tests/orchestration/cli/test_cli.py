"""The command line as a user types it: help, exit codes, messages. No test here starts Spark."""

import gzip
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner, Result

from lakejoin.orchestration.cli import app, options
from lakejoin.orchestration.demo.example import EXAMPLE
from lakejoin.storage.spark.engine import sockets

ROOT = Path(__file__).parents[3]
COMMANDS = (
    "demo",
    "init",
    "validate",
    "run",
    "status",
    "metrics",
    "show",
    "explain",
    "verify",
    "diff",
    "certify",
    "dangling",
    "references",
    "check",
    "maintain",
    "migrate",
    "reconcile",
    "repair",
    "dev",
    "warm",
    "doctor",
    "test",
    "quarantine",
    "engine",
)
PIPELINE = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {format: jsonl, path: "orders/{date}.jsonl"}
    columns: {order_id: bigint, customer: string, total: "decimal(12,2)"}
    key: [order_id]
  customers:
    source: {format: jsonl, path: "customers/{date}.jsonl"}
    columns: {customer: string, city: string}
    key: [customer]
joins:
  orders_with_customers: {left: orders, right: customers, foreign_key: [customer], how: left}
"""


@pytest.fixture
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail when a command asks for a Spark session."""

    def refuse(pipeline: object) -> None:
        pytest.fail(f"a session was asked for: {pipeline}")

    monkeypatch.setattr(options, "open_session", refuse)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Return a pipeline whose sources are empty directories."""
    for name in ("orders", "customers"):
        (tmp_path / name).mkdir()
    path = tmp_path / "lakejoin.yaml"
    path.write_text(PIPELINE)
    return path


def lakejoin(*arguments: object) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str) -> None:
    """Help begins with how the command is called and explains each of its options."""
    result = lakejoin(command, "--help")

    assert result.exit_code == 0
    assert result.stdout.startswith(f"Usage: lakejoin {command}")
    for parameter in get_command(app).commands[command].params:
        assert getattr(parameter, "help", None), parameter.name


def test_commands_are_the_documented_ones() -> None:
    """There is no command besides those that the documentation names."""
    assert tuple(get_command(app).commands) == COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_and_option_is_documented(command: str) -> None:
    """The reference has a section for each command, which names each of its options."""
    sections = (ROOT / "docs" / "command-line.md").read_text().split("\n## ")
    section = next(text for text in sections if text.startswith(f"`lakejoin {command}"))

    for parameter in get_command(app).commands[command].params:
        assert all(option in section for option in parameter.opts if option.startswith("--")), parameter.name


@pytest.mark.parametrize(
    ("typed", "expected"), [("qu", ["quarantine"]), ("run --batch-", ["--batch-by", "--batch-rows"])]
)
def test_shells_complete_what_was_typed(typed: str, expected: list[str]) -> None:
    """Commands and options, by what `--install-completion` has told bash to ask."""
    words = f"lakejoin {typed}"
    asked = {"_LAKEJOIN_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}

    told = CliRunner().invoke(app, [], prog_name="lakejoin", env=asked)

    assert (told.exit_code, told.stdout.split()) == (0, expected)


def test_version_is_that_of_the_package() -> None:
    """`--version` needs no command."""
    result = lakejoin("--version")

    assert (result.exit_code, result.stdout[:9]) == (0, "lakejoin ")


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("run",),
        ("run", "missing.yaml"),
        ("validate", "."),
        ("run", "{config}", "--batch-by", "week"),
        ("run", "{config}", "--from", "yesterday"),
        ("run", "{config}", "--batch-rows", "0"),
        ("run", "{config}", "--accept", "nonsense"),
        ("run", "{config}", "--from", "2013-01-02", "--to", "2013-01-01"),
        ("show", "{config}"),
        ("show", "{config}", "nonsense"),
        ("show", "{config}", "orders", "--format", "xml"),
        ("show", "{config}", "orders"),
        ("dangling", "{config}"),
        ("dangling", "{config}", "orders_with_customers"),
        ("references", "{config}", "orders"),
        ("references", "{config}", "nonsense", "--unreferenced"),
        ("demo", "--example", "."),
        ("init", "{config}"),
        ("init", "{config}/..", "--from"),
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("no_session")
def test_wrong_usage_ends_with_2(config: Path, arguments: tuple[str, ...]) -> None:
    """What cannot be done is said before anything is started, without a traceback."""
    result = lakejoin(*[argument.format(config=config) for argument in arguments])

    assert result.exit_code == 2
    assert result.stderr
    assert "Traceback" not in result.output


def test_unknown_table_is_answered_with_the_known_ones(config: Path) -> None:
    """A mistyped name gets the nearest one, and the list."""
    message = lakejoin("show", config, "order").stderr

    assert "no table 'order'; did you mean 'orders'?" in message
    for name in ("orders.changes", "customers.rows", "orders_with_customers.response_log", "quarantine"):
        assert name in message


@pytest.mark.usefixtures("no_session")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "customers",
            "customers is a table; expected a join of tables, whose foreign keys refer to rows that come and",
        ),
        (
            "by_city",
            "by_city is groups; expected a join of tables, whose foreign keys refer to rows that come and go",
        ),
        ("order", "no join of tables 'order'"),
    ],
)
def test_references_are_those_of_joins_of_tables(config: Path, name: str, message: str) -> None:
    """Whatever else has a name is told from them, and the message says which there are."""
    grouped = "groups:\n  by_city: {of: customers, by: [city], select: {customers: count(*)}}\n"
    config.write_text(PIPELINE + grouped)

    for command in ("dangling", "references"):
        refused = lakejoin(command, config, name)
        assert refused.exit_code == 2
        assert message in refused.stderr
        assert refused.stderr.endswith(": orders_with_customers\n")


def test_validate_says_what_was_read(config: Path) -> None:
    """A valid file is described: its tables, its joins, their keys."""
    result = lakejoin("validate", config)

    assert result.exit_code == 0
    assert (
        f"table orders: 3 columns, key order_id, jsonl {config.parent}/orders/{{date}}.jsonl" in result.stdout
    )
    assert "join orders_with_customers: orders left join customers on customer, key order_id" in result.stdout
    assert result.stdout.endswith(f"{config} is valid\n")


@pytest.mark.parametrize("command", ["validate", "run", "status", "check", "dev"])
@pytest.mark.usefixtures("no_session")
def test_every_mistake_of_the_file_is_one_line(config: Path, command: str) -> None:
    """Each has file, line and path; the exit code is that of wrong configuration."""
    config.write_text(PIPELINE.replace("how: left", "how: outer").replace("key: [order_id]", "key: [id]"))

    result = lakejoin(command, config)

    assert result.exit_code == 2
    lines = result.stderr.splitlines()
    assert [re.match(r".*lakejoin\.yaml:(\d+): ([\w.\[\]]+): .", line).groups() for line in lines] == [
        ("7", "tables.orders.key[0]"),
        ("13", "joins.orders_with_customers.how"),
    ]


@pytest.mark.usefixtures("no_session")
def test_run_without_input_starts_nothing(config: Path) -> None:
    """Nothing to do is no failure; a source without any file is pointed at."""
    result = lakejoin("run", config)

    assert result.exit_code == 0
    assert "Nothing pending" in result.stdout
    assert "warning: customers: no file matches" in result.stderr


@pytest.mark.usefixtures("no_session")
def test_run_beyond_the_dates_starts_nothing(config: Path) -> None:
    """Files outside of the range do not count as pending."""
    (config.parent / "orders" / "2013-01-02.jsonl").write_text('{"op": "c", "order_id": 1}\n')

    result = lakejoin("run", config, "--to", "2013-01-01")

    assert result.stdout.startswith("Nothing pending: orders has 1 file, ")
    assert result.stdout.endswith("; other dates were not looked at.\n")


@pytest.mark.usefixtures("no_session")
def test_missing_source_directory_fails_with_1(config: Path) -> None:
    """The message names the directory; it is not the configuration file that is wrong."""
    (config.parent / "orders").rmdir()

    result = lakejoin("run", config)

    assert result.exit_code == 1
    assert str(config.parent / "orders") in result.stderr


@pytest.mark.usefixtures("no_session")
def test_status_of_a_lake_that_is_not_there(config: Path) -> None:
    """Before the first run there are no batches, what waits is listed, and nothing is written."""
    (config.parent / "orders" / "2013-01-01.jsonl").write_text('{"op": "c", "order_id": 1, "coupon": "x"}\n')
    (config.parent / "orders" / "2013-01-02.jsonl").write_text('{"op": "c", "order_id": 2}\n')

    result = lakejoin("status", config)

    assert result.exit_code == 0
    assert "shop: 0 finished batches" in result.stdout
    assert "table orders: 2 of 2 files wait, from 2013-01-01.jsonl on" in result.stdout
    assert "table customers: no file matches" in result.stdout
    assert not (config.parent / "lake").exists()


@pytest.mark.usefixtures("no_session")
def test_status_for_programs_is_one_object(config: Path) -> None:
    """What is not there yet is null or empty."""
    (config.parent / "orders" / "2013-01-02.jsonl").write_text('{"op": "c", "order_id": 2, "coupon": "x"}\n')

    status = json.loads(lakejoin("status", config, "--format", "json").stdout)

    assert (status["pipeline"], status["batches"], status["last_cut"], status["unfinished"]) == (
        "shop",
        0,
        None,
        None,
    )
    assert status["tables"] == {"orders": {"rows": 0}, "customers": {"rows": 0}}
    assert status["waiting"] == [{"table": "orders", "file": "2013-01-02.jsonl"}]
    assert status["undeclared"] == {"orders": ["coupon"]}


@pytest.mark.usefixtures("no_session")
def test_run_says_what_it_would_do(config: Path) -> None:
    """In its order, and without a lake coming to be."""
    for day in (1, 2):
        (config.parent / "orders" / f"2013-01-0{day}.jsonl").write_text('{"op": "c", "order_id": 1}\n')

    result = lakejoin("run", config, "--dry-run", "--replace", "2013-01-01")

    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "would take the files of 2013-01-01 that were exported again in the place of what they were",
        "would read orders: 2 files of 2 dates from 2013-01-01 to 2013-01-02, from 2013-01-01.jsonl on",
        "nothing was changed",
    ]
    assert not (config.parent / "lake").exists()


@pytest.mark.usefixtures("no_session")
@pytest.mark.parametrize(("young", "left"), [(1, "1 file left to settle"), (2, "2 files left to settle")])
def test_run_promises_no_file_that_it_leaves_to_settle(config: Path, young: int, left: str) -> None:
    """Such files are counted, and a run that finds nothing else does not say that all are read."""
    declared = config.read_text().replace('"orders/{date}.jsonl"', '"orders/{date}.jsonl", settle: 1 hour')
    config.write_text(declared)
    for day in range(1, young + 1):
        (config.parent / "orders" / f"2013-01-0{day}.jsonl").write_text('{"op": "c", "order_id": 1}\n')

    for options_of_run in ([], ["--dry-run"]):
        nothing = lakejoin("run", config, *options_of_run)
        assert nothing.exit_code == 0
        assert nothing.stdout == (
            f"Nothing pending: orders has {young} file{'s' * (young - 1)}, customers has 0 files, all read but {left}, "
            "changed less than `settle` ago.\n"
        )
    old = config.parent / "orders" / "2013-01-09.jsonl"
    old.write_text('{"op": "c", "order_id": 9}\n')
    os.utime(old, (0, 0))

    assert lakejoin("run", config, "--dry-run").stdout.splitlines() == [
        "would read orders: 1 files of 1 dates from 2013-01-09 to 2013-01-09, from 2013-01-09.jsonl on",
        f"{left}, changed less than `settle` ago",
        "nothing was changed",
    ]


@pytest.mark.bad_input(13)
@pytest.mark.usefixtures("no_session")
def test_status_lists_undeclared_columns_of_the_newest_file(config: Path) -> None:
    """A column that a source got is named; `op` is no column."""
    (config.parent / "orders" / "2013-01-01.jsonl").write_text('{"op": "c", "order_id": 1, "coupon": "x"}\n')

    assert (
        "table orders: source columns that are not declared, and so ignored: coupon\n"
        in lakejoin("status", config).stdout
    )


@pytest.mark.usefixtures("no_session")
def test_status_without_a_source_directory_still_answers(config: Path) -> None:
    """What the lake holds can be told although a source is gone."""
    (config.parent / "orders").rmdir()

    result = lakejoin("status", config)

    assert result.exit_code == 0
    assert "what is pending cannot be told" in result.stdout


@pytest.mark.bad_input(34)
def test_dev_becomes_dagster_on_the_loopback_address(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process becomes Dagster's, which is told the file and a home below the lake; telemetry is off."""
    started: list[tuple[list[str], dict[str, str]]] = []
    monkeypatch.setattr(
        os, "execve", lambda path, command, environment: started.append((command, environment))
    )

    result = lakejoin("dev", config, "--port", free_port())

    [(command, environment)] = started
    home = config.parent / "lake" / "_dagster"
    assert result.exit_code == 0
    assert f"http://127.0.0.1:{command[command.index('--port') + 1]}" in result.stdout
    assert command[command.index("--host") + 1] == "127.0.0.1"
    assert (environment["LAKEJOIN_CONFIG"], environment["DAGSTER_HOME"]) == (str(config), str(home))
    assert re.search(r"telemetry:\s+enabled: false", (home / "dagster.yaml").read_text())


def test_dev_keeps_its_records_where_it_is_told(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--home` takes the place of the directory below the lake."""
    monkeypatch.setattr(os, "execve", lambda *_: None)

    lakejoin("dev", config, "--port", free_port(), "--home", tmp_path / "home")

    assert (tmp_path / "home" / "dagster.yaml").exists()
    assert not (config.parent / "lake").exists()


def test_dev_refuses_a_port_that_is_taken(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dagster would say it late and at length."""
    monkeypatch.setattr(os, "execve", lambda *_: pytest.fail("started"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = lakejoin("dev", config, "--port", taken.getsockname()[1])

    assert result.exit_code == 2
    assert "--port" in result.stderr


def free_port() -> int:
    """Return a port of the loopback address that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def test_demo_removes_nothing_but_a_lake(tmp_path: Path) -> None:
    """A directory with other files is refused, and they are still there."""
    (tmp_path / "precious.txt").touch()

    result = lakejoin("demo", "--lake", tmp_path)

    assert result.exit_code == 2
    assert (tmp_path / "precious.txt").exists()


def test_process_ends_with_its_code_and_all_it_had_to_say(tmp_path: Path) -> None:
    """What was registered for its end is done, and no thread that is still at work keeps it or brings it down."""
    code = (
        "import atexit, sys, threading, time; atexit.register(print, 'good-bye'); "
        "threading.Thread(target=time.sleep, args=[60]).start(); "
        "sys.argv = ['lakejoin', *sys.argv[1:]]; from lakejoin.orchestration.cli import main; main()"
    )
    for arguments, expected in ((["--version"], 0), (["validate", str(tmp_path / "none.yaml")], 2)):
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=50, check=False
        )
        assert (done.returncode, done.stdout.splitlines()[-1]) == (expected, "good-bye"), done.stderr


def test_interrupt_is_no_failure(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends with the code that shells expect, and says what became of the work."""

    def interrupt(_: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(options, "load_pipeline", interrupt)

    result = lakejoin("run", config)

    assert result.exit_code == 130
    assert result.stderr == "Interrupted. Every finished batch stays, and a run goes on from there.\n"


def test_unexpected_error_keeps_its_traceback(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake of the program is not dressed up as one of the user."""

    def fail(path: Path) -> None:
        raise ZeroDivisionError(str(path))

    monkeypatch.setattr(options, "load_pipeline", fail)

    assert isinstance(lakejoin("status", config).exception, ZeroDivisionError)


@pytest.mark.parametrize(
    ("arguments", "without"),
    [
        (["--help"], ["pyspark", "dagster", "great_expectations", "deltalake", "pydantic"]),
        (["run", "--help"], ["pyspark", "dagster", "great_expectations", "deltalake"]),
        (["validate", "{config}"], ["dagster", "great_expectations", "deltalake"]),
        (["status", "{config}"], ["dagster", "great_expectations"]),
        (["run", "{config}"], ["dagster", "great_expectations"]),
    ],
    ids=lambda value: value[0],
)
def test_command_imports_only_what_it_needs(config: Path, arguments: list[str], without: list[str]) -> None:
    """Help comes without Spark; what reads logs and files without JVM, Dagster or Great Expectations."""
    program = """
import json, sys
from lakejoin.orchestration.cli import app
try:
    app(sys.argv[1:])
except SystemExit as end:
    assert not end.code, end.code
context = sys.modules.get("pyspark.core.context")
print(json.dumps([*sys.modules, *(["JVM"] if context and context.SparkContext._gateway else [])]))
"""
    typed = [argument.format(config=config) for argument in arguments]
    done = subprocess.run(
        [sys.executable, "-c", program, *typed], capture_output=True, text=True, cwd=ROOT, check=True
    )

    loaded = json.loads(done.stdout.splitlines()[-1])
    assert [name for name in [*without, "JVM"] if name in loaded] == []


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the folder of a user's cache, with a path that is short enough for a socket."""
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setenv("XDG_CACHE_HOME", folder)
        yield Path(folder)


@pytest.mark.parametrize(
    ("command", "said"),
    [("status", "No engine runs.\n"), ("stop", "No engine runs.\n"), ("logs", "Nothing was logged.\n")],
)
def test_command_of_engines_says_that_there_is_none(cache: Path, command: str, said: str) -> None:
    """Also where one ended without leaving a word."""
    result = lakejoin("engine", command)
    (cache / "lakejoin" / "engines" / "0123456789abcdef.log").touch()

    assert (result.exit_code, result.stdout) == (0, said)
    assert lakejoin("engine", command).stdout == said


def test_engines_are_told_by_what_they_do(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that waits and one that serves a run: in a table, and as `stop` leaves them."""
    both = {"jvm": 4711, "since": 0, "runs": 3, "memory": 500 << 20, "stopping": False}
    waiting = {**both, "client": None, "busy": None, "ends_in": 1740.0}
    serving = {**both, "client": 7, "busy": 7, "ends_in": None}
    monkeypatch.setattr(sockets, "answers", lambda *_: iter([("a", waiting), ("b", serving)]))

    assert lakejoin("engine", "status").stdout == (
        "Engines\n"
        "  engine  process  does                       runs    MiB  since (UTC)\n"
        "  a          4711  waits, ends in 29 minutes     3  500.0  1970-01-01 00:00\n"
        "  b          4711  a run of process 7            3  500.0  1970-01-01 00:00\n"
    )
    assert lakejoin("engine", "stop").stdout == "a ends now\nb ends with the run of process 7\n"


def test_log_of_an_engine_is_printed(cache: Path) -> None:
    """Its last lines, under the name of the file."""
    lakejoin("engine", "status")
    log = cache / "lakejoin" / "engines" / "0123456789abcdef.log"
    log.write_text("".join(f"line {number}\n" for number in range(300)))

    printed = lakejoin("engine", "logs").stdout.splitlines()

    assert printed[0] == f"{log}:"
    assert printed[1:] == [f"line {number}" for number in range(100, 300)]


def test_engines_of_a_folder_that_others_may_enter_are_not_asked(cache: Path) -> None:
    """The command says why, and ends as where something cannot be used."""
    folder = cache / "lakejoin" / "engines"
    folder.mkdir(parents=True)
    folder.chmod(0o755)

    result = lakejoin("engine", "stop")

    assert (result.exit_code, "may be entered by other users" in result.stderr) == (1, True)


def test_example_is_a_copy_of_the_recording() -> None:
    """The demo's data are whole: seven days of each topic, and seven answers."""
    data = EXAMPLE / "data"
    days = [f"2013-01-0{day}" for day in range(1, 8)]

    assert sorted(folder.name for folder in (data / "expected").iterdir() if folder.is_dir()) == days
    for topic in ("flights", "planes", "weather"):
        assert sorted(path.name for path in (data / topic).iterdir()) == [f"{day}.jsonl.gz" for day in days]
    with gzip.open(data / "flights" / "2013-01-01.jsonl.gz") as file:
        assert file.readline().startswith(b'{"offset"')
