"""What `lakejoin doctor` finds, each with a machine on which it is so."""

import socket
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from packaging.requirements import Requirement

from lakejoin.orchestration.config.pipeline import SessionArguments
from lakejoin.orchestration.health import java, machine, packages
from lakejoin.orchestration.health.finding import Finding
from lakejoin.storage.spark.java import Java, JavaNotFound

GIB = 1 << 30
SESSION: SessionArguments = {"master": "local[2]", "conf": {}, "places": (), "formats": ()}


def verdicts(findings: Iterator[Finding]) -> dict[str, str]:
    """Return by what each finding is about how it was found."""
    return {finding.about: finding.verdict for finding in findings}


@pytest.mark.parametrize(("total", "verdict"), [(3 * GIB, "wrong"), (5 * GIB, "warning"), (6 * GIB, "ok")])
def test_memory_is_held_against_the_heap_and_what_is_beside_it(total: int, verdict: str) -> None:
    """A heap that is larger than the machine cannot be had at all."""
    found = machine.memory("4g", total)

    assert found.verdict == verdict
    assert ("spark.driver.memory" in found.text) == (verdict != "ok")


def test_limit_of_a_container_counts(tmp_path: Path) -> None:
    """What the machine has beyond it is not for this process; `max` is no limit."""
    limit, unlimited = tmp_path / "memory.max", tmp_path / "other"
    limit.write_text(f"{GIB // 4}\n")
    unlimited.write_text("max\n")

    assert machine.total_memory([limit, unlimited]) == GIB // 4
    assert machine.total_memory([unlimited, tmp_path / "nothing"]) > GIB // 4


@pytest.mark.parametrize(("free", "verdict"), [(0, "wrong"), (5 * GIB, "warning"), (50 * GIB, "ok")])
def test_disk_is_that_of_the_lake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, verdict: str
) -> None:
    """Also where the lake is not there yet."""
    asked: list[Path] = []

    def usage(path: Path) -> object:
        asked.append(path)
        return type("Usage", (), {"free": free})

    monkeypatch.setattr(machine.shutil, "disk_usage", usage)

    assert machine.disk(tmp_path / "some" / "lake").verdict == verdict
    assert asked == [tmp_path]


def test_folder_that_may_not_be_written_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is root may write everywhere, so the system's answer stands in."""
    monkeypatch.setattr(machine.os, "access", lambda path, mode: False)

    assert machine.disk(tmp_path).verdict == "wrong"


def test_port_that_is_taken_is_told() -> None:
    """The web interface has another one, so nothing is wrong."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1]
        assert machine.port("127.0.0.1", number).verdict == "warning"
    assert machine.port("127.0.0.1", number).verdict == "ok"


def test_packages_are_those_that_were_tested() -> None:
    """Each that is missing or of another version is named with what was expected."""
    needed = [
        Requirement("pyspark[connect]==4.2.0"),
        Requirement("pandas>=2.2,<3"),
        Requirement("dagster==1.13.27"),
    ]
    there = {"pyspark": "4.1.1", "pandas": "2.3.3"}

    def installed(name: str) -> str:
        if name not in there:
            raise PackageNotFoundError(name)
        return there[name]

    found = packages.versions(needed, installed)

    assert found.verdict == "wrong"
    assert "pyspark is 4.1.1, expected ==4.2.0; dagster is missing, expected ==1.13.27." in found.text
    assert packages.versions(needed[1:2], installed).verdict == "ok"
    assert packages.versions([]).verdict == "warning"


def test_no_java_is_wrong_and_the_rest_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it there is nothing that depends on it."""

    def nothing(environment: object) -> Java:
        raise JavaNotFound("Spark needs Java 17 or newer, and none was found.", "  PATH: no Java at all")

    monkeypatch.setattr(java, "find_java", nothing)

    assert verdicts(java.of_java(SESSION)) == {"Java": "wrong"}


def test_collector_that_corrupts_data_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only of the Java that has the mistake."""
    session: SessionArguments = {**SESSION, "conf": {"spark.driver.extraJavaOptions": "-XX:+UseG1GC"}}

    for version, verdict in (((25, 0, 2), "wrong"), ((25, 0, 3), "ok"), ((21, 0, 1), "ok")):
        monkeypatch.setattr(java, "find_java", lambda _, version=version: Java(Path("/java"), version))
        assert verdicts(java.of_java(session))["collector"] == verdict


def test_jars_that_are_not_there_are_told_and_not_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of a format that needs more of them, too; once they are there, the archive is looked for."""
    from lakejoin.storage.spark.jars import delta_coordinates, jar_name

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    assert verdicts(java.of_java(SESSION)) == {"Java": "ok", "collector": "ok", "JARs": "warning"}
    assert [path.name for path in tmp_path.rglob("*.jar")] == []
    for coordinate in delta_coordinates():
        (tmp_path / "lakejoin" / "jars" / jar_name(coordinate)).touch()
    assert verdicts(java.of_java(SESSION)) == {"Java": "ok", "collector": "ok", "JARs": "ok", "archive": "ok"}
    avro: SessionArguments = {**SESSION, "formats": ("avro",)}
    assert verdicts(java.of_java(avro))["JARs"] == "warning"
    cluster: SessionArguments = {**SESSION, "master": "yarn"}
    assert "cluster" in {found.about: found.text for found in java.of_java(cluster)}["archive"]


def test_engines_need_a_folder_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """None runs here; one that others may enter is not used."""
    with TemporaryDirectory() as short:  # the path of a socket has few characters
        monkeypatch.setenv("XDG_CACHE_HOME", short)

        assert java.engines() == Finding("engine", "ok", "none runs; a run starts one")
        (Path(short) / "lakejoin" / "engines").chmod(0o755)
        assert java.engines().verdict == "warning"


def test_heap_is_that_of_the_pipeline() -> None:
    """By default the project's own."""
    assert java.driver_memory(SESSION) == "4g"
    assert java.driver_memory({**SESSION, "conf": {"spark.driver.memory": "12g"}}) == "12g"
    assert machine.bytes_of("512m") == GIB // 2
