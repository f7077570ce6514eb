"""Which archive a JVM starts from, and which it does not; the JVM that writes one is played by the test."""

import json
import logging
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lakejoin.storage.spark.archive import Archive, archive_of, remove_orphans
from lakejoin.storage.spark.engine.launch import Launch, stamped
from lakejoin.storage.spark.java import Java

OLD, NEW = (17, 0, 15), (25, 0, 2)


@pytest.fixture
def jar(tmp_path: Path) -> Path:
    """Return a file that JVMs are made of."""
    path = tmp_path / "spark.jar"
    path.write_text("classes")
    return path


def launch(jar: Path, options: str = "-Xss4m", **environment: str) -> Launch:
    """Return what a JVM is started with that is made of one file."""
    conf = {"spark.driver.extraJavaOptions": options}
    return Launch("/spark", conf, environment, stamped([str(jar)]), ("0022",))


def made(tmp_path: Path, launched: Launch, version: tuple[int, ...] = NEW) -> Archive:
    """Return an archive that a JVM has written."""
    archive = archive_of(launched, Java(Path("/java"), version), tmp_path / "cache")
    archive.path.parent.mkdir(parents=True, exist_ok=True)
    archive.draft.write_bytes(bytes(range(256)) * 100)
    assert archive.publish() == 25_600
    return archive


@pytest.mark.parametrize(
    ("version", "makes", "uses"),
    [(OLD, "-XX:ArchiveClassesAtExit", "-XX:SharedArchiveFile"), (NEW, "-XX:AOTCacheOutput", "-XX:AOTCache")],
)
def test_jvm_is_told_of_an_archive_in_the_words_of_its_java(
    tmp_path: Path, jar: Path, version: tuple[int, ...], makes: str, uses: str
) -> None:
    """What the JVM says of it goes to standard error, for a command's output may be read by a program."""
    archive = made(tmp_path, launch(jar), version)

    assert archive.option_to_make == f"{makes}={archive.draft}"
    assert archive.option is not None
    *logging_options, option = archive.option.split()
    assert option == f"{uses}={archive.path}"
    assert [said.endswith(("=off", ":stderr")) for said in logging_options] == [True, True]
    assert not archive.draft.exists()


def test_path_with_a_space_is_one_option(tmp_path: Path, jar: Path) -> None:
    """Spark parts the options as a shell does."""
    archive = made(tmp_path / "my cache", launch(jar))

    assert (archive.option or "").endswith(f" '-XX:AOTCache={archive.path}'")


def test_without_an_archive_nothing_is_said(
    tmp_path: Path, jar: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It costs nothing to have none."""
    archive = archive_of(launch(jar), Java(Path("/java"), NEW), tmp_path)

    assert archive.option is None
    assert caplog.records == []


def cut(archive: Archive, _: Path) -> None:
    """Lose the end, as a full disk does."""
    os.truncate(archive.path, 20_000)


def flip(archive: Archive, _: Path) -> None:
    """Change one byte of it, and not its size."""
    content = bytearray(archive.path.read_bytes())
    content[12_345] ^= 1
    archive.path.write_bytes(content)


def swap(archive: Archive, _: Path) -> None:
    """Put another file in its place."""
    archive.path.write_text("hello")


def remove(archive: Archive, _: Path) -> None:
    """Leave only the file that tells of it."""
    archive.path.unlink()


def garble(archive: Archive, _: Path) -> None:
    """Damage the file that tells of it."""
    archive.path.with_suffix(".json").write_text("[1")


def upgrade(_: Archive, jar: Path) -> None:
    """Install another version in the same place."""
    jar.write_text("other classes")


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (cut, "is damaged"),
        (flip, "is damaged"),
        (swap, "is damaged"),
        (remove, "cannot be read"),
        (garble, "cannot be read"),
        (upgrade, "was made for a Java, JARs or a version that have been replaced"),
    ],
)
def test_archive_that_does_not_fit_is_passed_over_with_a_line(
    tmp_path: Path,
    jar: Path,
    harm: Callable[[Archive, Path], None],
    said: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A JVM of Java 17 would end of a cut one; the line says what to do. Made anew, it is used again."""
    archive = made(tmp_path, launch(jar))

    harm(archive, jar)

    changed = replace(archive, launch=launch(jar))
    with caplog.at_level(logging.WARNING):
        assert changed.option is None
    assert caplog.messages == [f"{archive.path} is passed over: it {said}. `lakejoin warm` makes it anew."]
    assert made(tmp_path, launch(jar)).option is not None


def test_jvms_with_other_options_have_other_archives(tmp_path: Path, jar: Path) -> None:
    """Options, variables that hold some, Java and class path tell them apart; memory and other variables do not."""
    cache, java = tmp_path, Java(Path("/java"), NEW)
    usual = launch(jar)
    others = [
        archive_of(launch(jar, "-Xss8m"), java, cache),
        archive_of(launch(jar, JAVA_TOOL_OPTIONS="-Xss8m"), java, cache),
        archive_of(launch(jar, HADOOP_CONF_DIR="/etc/hadoop"), java, cache),
        archive_of(usual, Java(Path("/other/java"), NEW), cache),
        archive_of(
            replace(usual, conf={**usual.conf, "spark.driver.extraClassPath": "/kafka.jar"}), java, cache
        ),
        archive_of(replace(usual, spark_home="/other"), java, cache),
        archive_of(usual, java, cache),
    ]
    assert len({archive.path for archive in others}) == len(others)

    same = replace(usual, conf={**usual.conf, "spark.driver.memory": "9g"}, environment={"AWS_REGION": "x"})
    assert archive_of(same, java, cache).path == others[-1].path


def test_times_within_a_second_do_not_count(tmp_path: Path, jar: Path) -> None:
    """An image of a container keeps whole seconds, and its archive fits all the same."""
    os.utime(jar, ns=(10**18 + 5, 10**18 + 5))
    made(tmp_path, launch(jar))
    os.utime(jar, ns=(10**18, 10**18))

    assert archive_of(launch(jar), Java(Path("/java"), NEW), tmp_path / "cache").option is not None


def test_archives_of_installations_that_are_gone_are_removed(tmp_path: Path, jar: Path) -> None:
    """Each has some 250 MB; those of others that are still there stay."""
    other = tmp_path / "other.jar"
    other.write_text("classes")
    kept, gone = made(tmp_path, launch(jar)), made(tmp_path, launch(other, "-Xss8m"))
    other.unlink()

    remove_orphans(tmp_path / "cache")

    assert sorted(path.stem for path in kept.path.parent.iterdir()) == [kept.path.stem] * 2
    assert json.loads(kept.path.with_suffix(".json").read_text())["bytes"] == 25_600
    assert not gone.path.exists()
