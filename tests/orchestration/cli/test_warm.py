"""The archive that `lakejoin warm` makes: later JVMs start from it, and no damage to it keeps them from starting."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from engines import own_cache
from lakejoin.orchestration.cli import app
from lakejoin.orchestration.config import load
from lakejoin.orchestration.runs.warm_up import write_pipeline
from lakejoin.storage.spark.java import find_java

ROOT = Path(__file__).parents[3]
_CLIENT = """
from pathlib import Path
from lakejoin.storage.spark.session import start_session

spark = start_session("local[2]", {"spark.driver.memory": "1g"})
process = spark._jvm.java.lang.ProcessHandle.current().pid()
maps = Path(f"/proc/{process}/maps").read_text().split()
print(sorted({path for path in maps if "/archives/" in path}), spark.range(7).count())
"""
"""Starts a session as a run does, with less memory than the training had; tells the archives that its JVM has open."""


@pytest.fixture
def cache() -> Iterator[Path]:
    """Return the cache of a user who has the JARs and nothing else."""
    with own_cache() as folder:
        yield folder / "lakejoin"


def environment(cache: Path, java_home: str | None) -> dict[str, str]:
    """Return the environment of that user, with the Java that the project brings or another."""
    kept = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    return {
        **kept,
        "XDG_CACHE_HOME": str(cache.parent),
        "PYTHONPATH": str(ROOT),
        **({"JAVA_HOME": java_home} if java_home else {}),
    }


def session(variables: Mapping[str, str]) -> tuple[str, str]:
    """Start a session; return what it tells, and what is said beside."""
    done = subprocess.run(
        [sys.executable, "-c", _CLIENT], capture_output=True, text=True, env=variables, check=True
    )
    return done.stdout.strip(), done.stderr


def javas() -> list[Any]:
    """The Java of the project, and the machine's own where it is older: it has archives of another kind."""
    found: list[Any] = [pytest.param(None, id="ours")]
    if (there := shutil.which("java")) and find_java(
        {"JAVA_HOME": str(Path(there).resolve().parents[1])}
    ).version < (25,):
        found.append(pytest.param(str(Path(there).resolve().parents[1]), id="older"))
    return found


@pytest.mark.slow
@pytest.mark.failure(22)
@pytest.mark.parametrize("java_home", javas())
def test_jvm_starts_from_the_archive_that_was_made_and_without_one_that_is_cut(
    cache: Path, java_home: str | None
) -> None:
    """Standard output has nothing of the JVM's, and standard error one line, which names the way out."""
    variables = environment(cache, java_home)
    assert session(variables) == ("[] 7", "")

    made = subprocess.run(
        [sys.executable, "-m", "lakejoin", "warm"],
        capture_output=True, text=True, env=variables, check=True,
    )  # fmt: skip

    archive = next(path for path in (cache / "archives").iterdir() if path.suffix != ".json")
    assert sorted(path.suffix for path in (cache / "archives").iterdir()) == sorted([".json", archive.suffix])
    assert f"{archive}: " in made.stdout.replace("\n", "")
    assert made.stderr == ""
    assert session(variables) == (f"[{str(archive)!r}] 7", "")

    os.truncate(archive, archive.stat().st_size // 2)

    told, said = session(variables)
    assert told == "[] 7"
    assert said == f"{archive} is passed over: it is damaged. `lakejoin warm` makes it anew.\n"


def test_pipeline_that_is_worked_off_is_right(tmp_path: Path) -> None:
    """It has each kind of join, and each kind of change in its files."""
    pipeline = load(write_pipeline(tmp_path))

    assert [join.how for join in pipeline.joins.values()] == ["left", "inner", "left"]
    lines = [json.loads(line) for path in tmp_path.rglob("*.jsonl") for line in path.read_text().splitlines()]
    assert {line["op"] for line in lines} == {"c", "u", "d"}


def test_training_that_fails_leaves_no_archive_and_says_why(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the JVM said last is shown; JVMs start without an archive as before."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache.parent))

    run = subprocess.run

    def fail(command: list[str], **how: Any) -> "subprocess.CompletedProcess[str]":
        if "lakejoin.orchestration.runs.warm_up" not in command:
            return run(command, check=how.pop("check", False), **how)
        return subprocess.CompletedProcess(command, 1, "no memory\nthe JVM ended\n")

    monkeypatch.setattr(subprocess, "run", fail)

    answer = CliRunner().invoke(app, ["warm"])

    assert answer.exit_code == 1
    assert "No archive was made, for this happened:\nno memory\nthe JVM ended" in answer.stderr
    assert list((cache / "archives").iterdir()) == []


def test_cluster_has_no_archive(tmp_path: Path) -> None:
    """Its drivers get their JARs in another way."""
    config = write_pipeline(tmp_path)
    config.write_text(config.read_text() + "spark: {master: 'spark://host:7077'}\n")

    answer = CliRunner().invoke(app, ["warm", str(config)])

    assert answer.stdout == "Nothing to make: the master spark://host:7077 is a cluster.\n"
