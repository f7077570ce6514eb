"""What a run finds in the JVM that another run left, and what becomes of it when one of the processes is killed."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from engines import is_gone, own_cache, until
from lakejoin.orchestration.config import load
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.spark.engine.sockets import answers, engine_folder, log_paths
from recordings.tiny import DAYS, write_pipeline

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="no sockets with a path")]

ROOT = Path(__file__).resolve().parents[4]
RUNS = int(os.environ.get("LAKEJOIN_ENGINE_RUNS", "12"))
"""Runs of the test that counts what they leave; 200 take half an hour."""
MIB = 1 << 20
_CLIENT = """
import json, sys
from datetime import timedelta
from pyspark import SparkContext
from lakejoin.storage.spark.session import start_session

conf, idle, text = json.loads(sys.argv[1])
spark = start_session("local[2]", conf, idle=None if idle is None else timedelta(seconds=idle))
jvm = spark._jvm
process = jvm.java.lang.ProcessHandle.current().pid()
told = {}
def tell(**values):
    told.update(values)
exec(text)
print(json.dumps({"jvm": process, **told}), flush=True)
"""
"""Starts a session, and works on it as a test says."""
_ENDLESS = "spark.range(0, 2**50, 1, 4).selectExpr('sum(hash(id))').collect()"
_LEAVE = """
spark.conf.set("spark.sql.shuffle.partitions", "77")
spark.sql("SET spark.sql.broadcastTimeout=7")
spark.range(10).createOrReplaceTempView("left_view")
spark.range(10).createOrReplaceGlobalTempView("left_global")
spark.range(1000).cache().count()
spark.range(10).write.format("delta").mode("overwrite").save(TABLE)
spark.sparkContext.setLogLevel("INFO")
spark.sparkContext.setLocalProperty("spark.job.description", "left")
jvm.java.lang.System.setProperty("spark.sql.left", "yes")
jvm.java.lang.System.setProperty("left", "yes")
kept = [jvm.java.util.ArrayList() for _ in range(100)]
"""
_LOOK = """
names = {"spark.app.id", "spark.app.startTime", "spark.app.submitTime", "spark.driver.port"}
context = spark.sparkContext
system = jvm.java.lang.System
properties = {name: system.getProperty(name) for name in system.getProperties().stringPropertyNames()}
tell(
    settings={name: value for name, value in spark.conf.getAll.items() if name not in names},
    context={name: value for name, value in context.getConf().getAll() if name not in names},
    properties={name: value for name, value in properties.items() if name not in names | {"sun.java.command"}},
    views=[table.name for table in spark.catalog.listTables()],
    shared=[table.name for table in spark.catalog.listTables("global_temp")],
    kept=context._jsc.getPersistentRDDs().size(),
    level=jvm.org.apache.logging.log4j.LogManager.getRootLogger().getLevel().toString(),
    job=context.getLocalProperty("spark.job.description"),
    tasks="Executor task launch worker" in jvm.java.lang.Thread.getAllStackTraces().keySet().toString(),
)
"""


class Home:
    """A user with engines of his own."""

    def __init__(self, folder: Path) -> None:
        self.folder = engine_folder(folder / "lakejoin")
        self.environment = {
            **{name: value for name, value in os.environ.items() if name != "CI"},
            "XDG_CACHE_HOME": str(folder),
            "PYTHONPATH": str(ROOT),
        }

    def start(
        self, text: str = "", conf: dict[str, str] | None = None, idle: float | None = 120, **variables: str
    ) -> "subprocess.Popen[str]":
        """Start a run that works as the text says."""
        said = json.dumps([{"spark.driver.memory": "1g", **(conf or {})}, idle, text])
        return subprocess.Popen(
            [sys.executable, "-c", _CLIENT, said],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**self.environment, **variables},
        )  # fmt: skip

    def run(self, text: str = "", **how: Any) -> dict[str, Any]:
        """Run to the end and return what it tells."""
        said, errors = (process := self.start(text, **how)).communicate(timeout=300)
        assert process.returncode == 0, errors
        told: dict[str, Any] = json.loads(said.splitlines()[-1])
        return told

    def engines(self) -> list[dict[str, Any]]:
        """Return what each engine says of itself."""
        return [answer for _, answer in answers(self.folder, "status")]

    def waits(self) -> bool:
        """Whether there is an engine that waits for the next run."""
        return [engine["client"] for engine in self.engines()] == [None]

    def logged(self) -> str:
        """Return all logs."""
        return "".join(path.read_text() for path in log_paths(self.folder))


@pytest.fixture
def home() -> Iterator[Home]:
    """Return a user whose engines end with the test."""
    with own_cache() as folder:
        yield Home(folder)


def said_at_once(process: "subprocess.Popen[str]") -> str:
    """Return the next line of a run that goes on."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.failure(21)
def test_run_finds_in_the_jvm_of_another_what_it_finds_in_its_own(home: Home, tmp_path: Path) -> None:
    """Settings, properties of Java, views, kept frames, level of the log: as if nobody had been there before."""
    table = f"TABLE = {str(tmp_path / 'table')!r}\n"
    own = home.run(_LOOK, idle=None)
    first = home.run(
        table + _LEAVE, conf={"spark.sql.shuffle.partitions": "5", "spark.hadoop.fs.left": "yes"}
    )
    assert until(home.waits), home.logged()

    second = home.run(_LOOK)

    assert second["jvm"] == first["jvm"] != own["jvm"]
    # an engine's JVM is told nothing that a session brings itself, and has none of it from another one
    of_start = dict.fromkeys(
        ["user.dir", "spark.app.name", "spark.master", "spark.ui.showConsoleProgress"], ""
    )
    properties = second.pop("properties") | of_start
    assert properties.items() <= (own.pop("properties") | of_start).items()
    assert second | {"jvm": 0} == own | {"jvm": 0}


_BY_DAGSTER = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from dagster import DagsterInstance
from lakejoin.orchestration.config import load
from lakejoin.orchestration.defs.code_location import pipeline_definitions
from lakejoin.orchestration.defs.embedded_pipeline import EmbeddedPipeline

job = pipeline_definitions(EmbeddedPipeline(load(Path(sys.argv[1]))), datetime.now(UTC)).resolve_job_def("tiny_job")
day = {f"dagster/asset_partition_range_{end}": sys.argv[2] for end in ("start", "end")}
with DagsterInstance.ephemeral() as instance:
    assert job.execute_in_process(instance=instance, tags=day).success
"""


def test_command_line_and_dagster_share_a_jvm(home: Home, tmp_path: Path) -> None:
    """A day by the one, the next by the other, then checks: each a process, all in one JVM."""
    path = str(write_pipeline(tmp_path, DAYS))
    cli = ["-m", "lakejoin"]
    for arguments in (
        [*cli, "run", path, "--to", DAYS[0]],
        ["-c", _BY_DAGSTER, path, DAYS[1]],
        [*cli, "check", path],
        [*cli, "run", path, "--no-resident"],
    ):
        done = subprocess.run(
            [sys.executable, *arguments], capture_output=True, text=True, env=home.environment, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert until(home.waits), home.logged()

    assert [engine["runs"] for engine in home.engines()] == [3]
    assert Journal(Lake(load(Path(path)).lake)).last.dates == (date.fromisoformat(DAYS[-1]),)  # type: ignore[union-attr]


def test_two_runs_at_once_have_a_jvm_each(home: Home) -> None:
    """The second does not wait for the first, nor disturb it."""
    first = home.start("print('here', flush=True); sys.stdin.readline(); tell(n=spark.range(9).count())")
    first_end = Path(f"/proc/{first.pid}/fd/0")
    assert first_end.exists()
    assert said_at_once(first) == "here"

    second = home.run("tell(n=spark.range(7).count())")

    said, errors = first.communicate(timeout=120)
    assert first.returncode == 0, errors
    told = json.loads(said.splitlines()[-1])
    assert (told["n"], second["n"]) == (9, 7)
    assert told["jvm"] != second["jvm"]


@pytest.mark.failure(21)
def test_jobs_of_a_run_that_is_killed_end_with_it(home: Home) -> None:
    """SIGKILL in the middle of a job: the next run has the JVM, and nothing else computes there."""
    killed = home.start(f"print(process, flush=True); {_ENDLESS}")
    java = int(said_at_once(killed))
    time.sleep(2)
    killed.kill()
    killed.communicate()
    assert until(home.waits), home.logged()

    after = home.run(_LOOK + "tell(n=spark.range(7).count())")

    assert (after["jvm"], after["tasks"], after["n"]) == (java, False, 7)


@pytest.mark.failure(21)
@pytest.mark.parametrize("wait", [0.0, 0.1, 0.3, 0.6])
def test_run_that_is_killed_while_it_starts_leaves_no_context(home: Home, wait: float) -> None:
    """The JVM may start it all the same: the next run must not find one there that it did not start."""
    java = home.run()["jvm"]
    assert until(home.waits)
    killed = home.start()
    assert until(lambda: not home.waits())
    time.sleep(wait)
    killed.kill()
    killed.communicate()
    assert until(home.waits), home.logged()

    assert home.run()["jvm"] == java


@pytest.mark.failure(21)
def test_interrupt_of_a_run_leaves_the_engine(home: Home) -> None:
    """Ctrl-C reaches the whole group of processes of a terminal, in which the engine is not."""
    interrupted = home.start(f"print(process, flush=True); {_ENDLESS}")
    java = int(said_at_once(interrupted))
    assert os.getpgid(java) != os.getpgid(interrupted.pid)
    interrupted.send_signal(signal.SIGINT)
    interrupted.communicate()
    assert until(home.waits), home.logged()

    assert home.run()["jvm"] == java


@pytest.mark.failure(21)
def test_run_whose_jvm_is_killed_learns_of_it_and_the_next_gets_another(home: Home) -> None:
    """As when the system had no memory left for it."""
    run = home.start(
        "from lakejoin.orchestration.spark_errors import has_ended\n"
        "print(process, flush=True)\n"
        f"try: {_ENDLESS}\n"
        "except Exception: tell(ended=has_ended(30))"
    )
    java = int(said_at_once(run))
    os.kill(java, signal.SIGKILL)

    said, errors = run.communicate(timeout=120)

    assert json.loads(said.splitlines()[-1])["ended"] is True, errors
    assert until(lambda: home.engines() == [])
    assert home.run()["jvm"] != java


@pytest.mark.failure(21)
def test_jvm_ends_with_its_engine(home: Home) -> None:
    """Whoever kills the process that keeps it leaves no JVM that nobody knows of."""
    home.run()
    engine = home.engines()[0]
    os.kill(engine["pid"], signal.SIGKILL)

    assert until(lambda: is_gone(engine["jvm"]))
    assert home.run()["jvm"] != engine["jvm"]


def test_engine_ends_when_it_is_idle_and_when_its_files_change(home: Home, tmp_path: Path) -> None:
    """Without a trace but its log, which says nothing."""
    first = home.run(idle=1)
    assert until(lambda: is_gone(first["jvm"]))
    assert home.engines() == []

    second = home.run(SPARK_CONF_DIR=str(tmp_path))
    assert not is_gone(second["jvm"])
    (tmp_path / "spark-defaults.conf").write_text("spark.ui.enabled false\n")

    assert until(lambda: is_gone(second["jvm"]))
    assert [path.suffix for path in home.folder.glob("*.sock")] == []
    assert home.logged() == ""


def test_what_runs_leave_in_a_jvm_is_bounded(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No context of a run that is over is kept, nor its threads and files; of its heap only code, which has a limit."""
    work = f"TABLE = {str(tmp_path / 'table')!r}\n" + _LEAVE
    held = []
    for number in range(RUNS):
        home.run(work)
        assert until(home.waits), home.logged()
        engine = home.engines()[0]
        assert engine["runs"] == number + 1
        held.append(engine["after_last"])
    with capsys.disabled():
        for number in sorted({1, 10, len(held)}):
            print(f"\nafter {number:3} runs: {held[number - 1]}", end="")  # noqa: T201
        print(f", {engine['memory'] >> 20} MiB in all")  # noqa: T201
    tenth, last = held[9], held[-1]
    if jcmd := shutil.which("jcmd"):  # a Java without tools does not tell
        told = subprocess.run(
            [jcmd, str(engine["jvm"]), "GC.class_histogram"], capture_output=True, check=True
        )
        assert b" org.apache.spark.SparkContext\n" not in told.stdout
    assert last["heap"] - tenth["heap"] < 3 * MIB * len(held)
    assert last["threads"] <= tenth["threads"] + 50
    assert last["files"] <= tenth["files"] + 20
