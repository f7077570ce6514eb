"""Which runs share an engine, and when it is out of date."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from lakejoin.storage.spark.engine.launch import Launch, launch_of

SETTINGS = {
    "spark.driver.memory": "4g",
    "spark.driver.extraJavaOptions": "-Xss4m",
    "spark.sql.shuffle.partitions": "8",
    "spark.app.name": "shop",
}


@pytest.fixture
def jar(tmp_path: Path) -> Path:
    """Return a file that is on the class path."""
    path = tmp_path / "delta.jar"
    path.write_bytes(b"one")
    return path


def launch(jar: Path, conf: Mapping[str, str] | None = None, said: Mapping[str, str] | None = None) -> Launch:
    """Return what is needed with settings and variables beside those that are always there."""
    settings = {**SETTINGS, "spark.driver.extraClassPath": str(jar), **(conf or {})}
    environment = {"SPARK_HOME": str(jar.parent), "PATH": "/usr/bin", **(said or {})}
    return launch_of(settings, Path("/usr/bin/java"), environment)


@pytest.mark.parametrize(
    ("conf", "said", "same"),
    [
        ({"spark.sql.shuffle.partitions": "2"}, {}, True),
        ({"spark.app.name": "bank"}, {}, True),
        ({"spark.driver.memory": "2g"}, {}, False),
        ({"spark.driver.extraJavaOptions": "-Xss8m"}, {}, False),
        ({"spark.jars.packages": "a:b:1"}, {}, False),
        ({"spark.kerberos.keytab": "/etc/shop.keytab"}, {}, False),
        ({}, {"SPARK_BUFFER_SIZE": "65536"}, True),
        ({}, {"AWS_SECRET_ACCESS_KEY": "another"}, False),
        ({}, {"LC_ALL": "C.UTF-8"}, False),
        ({}, {"DAGSTER_RUN_ID": "7", "SHLVL": "2", "OLDPWD": "/", "PATH": "/sbin"}, True),
    ],
    ids=str,
)
def test_runs_share_an_engine_whose_jvm_would_start_alike(
    jar: Path, conf: dict[str, str], said: dict[str, str], same: bool
) -> None:
    """What a session brings itself tells no engines apart; what only a start can change does."""
    assert (launch(jar, conf, said).key == launch(jar).key) is same


def test_jvm_gets_no_variable_that_the_key_leaves_out(jar: Path) -> None:
    """So nothing of the environment of the run that started it reaches a later one."""
    assert launch(jar, said={"SHOP_PASSWORD": "hush"}).environment == {
        "SPARK_HOME": str(jar.parent),
        "PATH": "/usr/bin",
    }


@pytest.mark.parametrize("named", ["mine.jar", "min*.jar", "./mine.jar"])
@pytest.mark.parametrize("setting", ["spark.jars", "spark.driver.extraClassPath"])
def test_engine_is_out_of_date_when_a_file_of_it_is_another(
    jar: Path, setting: str, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A JAR that was replaced in place, of the same size: by its time of change, from whatever folder one looks."""
    monkeypatch.chdir(jar.parent)
    mine = jar.with_name("mine.jar")
    mine.write_bytes(b"one")
    before = launch(jar, {setting: named})
    monkeypatch.chdir("/")
    assert before.is_current

    mine.write_bytes(b"two")
    os.utime(mine, ns=(0, 7))

    assert not before.is_current
    monkeypatch.chdir(jar.parent)
    assert launch(jar, {setting: named}).key != before.key


def test_rights_of_files_are_part_of_the_key(jar: Path) -> None:
    """A lake's files have the rights that the run's own process would give them."""
    usual = os.umask(0o027)
    try:
        narrow = launch(jar)
        os.umask(0o022)
        assert launch(jar).key != narrow.key
    finally:
        os.umask(usual)


def test_launch_is_told_to_another_process_as_it_is(jar: Path) -> None:
    """Through JSON and back."""
    found = launch(jar)

    assert Launch.from_json(json.loads(json.dumps(asdict(found)))) == found


def test_archive_that_a_jvm_started_from_tells_no_engines_apart(jar: Path) -> None:
    """A run has no need of it. Its options come before those of the user, who may choose what is logged."""
    without = launch(jar, {"spark.driver.extraJavaOptions": "-Xss8m"})
    found = replace(without, archive="-Xlog:aot*=off -XX:AOTCache=/a.aot")

    assert found.key == without.key
    assert without.submitted == without.conf
    options = found.submitted["spark.driver.extraJavaOptions"]
    assert options == "-Xlog:aot*=off -XX:AOTCache=/a.aot -Xss8m"
