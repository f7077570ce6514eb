"""How Delta's JARs come into the cache; functions and a shell script play Spark's resolution."""

import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from lakejoin.storage.spark.jars import (
    JarsNotFound,
    delta_coordinates,
    jar_name,
    provide_jars,
    spark_resolver,
)


def bring_jars(coordinates: Sequence[str], scratch: Path) -> Path:
    """Stand in for a resolution that finds every JAR."""
    for coordinate in coordinates:
        (scratch / jar_name(coordinate)).write_text(coordinate)
    return scratch


def refuse(coordinates: Sequence[str], scratch: Path) -> Path:
    """Stand in for a resolution that must not be asked."""
    raise AssertionError(f"the network was asked for {coordinates}")


def make_spark(home: Path, script: str) -> Path:
    """Return a SPARK_HOME whose spark-submit is a shell script."""
    submit = home / "bin" / "spark-submit"
    submit.parent.mkdir(parents=True)
    submit.write_text(f"#!/bin/sh\n{script}\n")
    submit.chmod(0o755)
    return home


def test_coordinates_fit_the_installed_spark_and_delta() -> None:
    """Delta's artifact names the minor version of Spark and the version of Scala that it was built for."""
    assert delta_coordinates() == ["io.delta:delta-spark_4.2_2.13:4.4.0", "io.delta:delta-storage:4.4.0"]


def test_jars_are_fetched_once(tmp_path: Path) -> None:
    """The second call finds the files and asks nobody."""
    fetched = provide_jars(tmp_path / "jars", bring_jars)
    found = provide_jars(tmp_path / "jars", refuse)

    assert found == fetched
    assert [jar.read_text() for jar in found] == delta_coordinates()


def test_jars_are_fetched_again_when_one_is_missing(tmp_path: Path) -> None:
    """A cache that lost a file is completed."""
    jars = provide_jars(tmp_path, bring_jars)
    jars[1].unlink()

    assert all(jar.exists() for jar in provide_jars(tmp_path, bring_jars))


def test_nothing_but_the_jars_is_left_in_the_cache(tmp_path: Path) -> None:
    """The folder of the resolution goes away, whether it succeeded or not."""
    jars = provide_jars(tmp_path / "good", bring_jars)
    with pytest.raises(JarsNotFound):
        provide_jars(tmp_path / "bad", lambda _, scratch: scratch)

    assert sorted((tmp_path / "good").iterdir()) == sorted(jars)
    assert list((tmp_path / "bad").iterdir()) == []


def test_two_fetches_at_once_both_end_with_complete_files(tmp_path: Path) -> None:
    """Both resolve before either publishes; the later one replaces files by equal ones."""
    both_resolved = threading.Barrier(2, timeout=30)
    found: list[list[Path]] = []

    def resolve(coordinates: Sequence[str], scratch: Path) -> Path:
        folder = bring_jars(coordinates, scratch)
        both_resolved.wait()
        return folder

    def fetch() -> None:
        found.append(provide_jars(tmp_path, resolve))

    threads = [threading.Thread(target=fetch) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(found) == 2
    assert found[0] == found[1]
    assert [jar.read_text() for jar in found[0]] == delta_coordinates()


def test_spark_resolver_lets_spark_submit_fetch_two_files_into_the_scratch_folder(tmp_path: Path) -> None:
    """It asks for both, keeps Ivy's files out of the home folder, and excludes what Spark ships."""
    spark_home = make_spark(
        tmp_path / "spark",
        f"""printf '%s\\n' "$@" "$JAVA_HOME" "$SPARK_HOME" > {tmp_path}/asked
        mkdir -p {tmp_path}/scratch/ivy/jars""",
    )
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    options = "-Xms64g -Dhttps.proxyHost=proxy"  # the JVM that fetches has no such heap
    conf = {
        "spark.jars.repositories": "mirror",
        "spark.driver.extraJavaOptions": options,
        "spark.sql.ansi.enabled": "false",
    }
    folder = spark_resolver(spark_home, tmp_path / "java", conf)(delta_coordinates(), scratch)

    asked = (tmp_path / "asked").read_text().splitlines()
    assert folder == scratch / "ivy" / "jars"
    assert f"spark.jars.packages={','.join(delta_coordinates())}" in asked
    assert f"spark.jars.ivy={scratch}/ivy" in asked
    assert "spark.jars.repositories=mirror" in asked
    assert "spark.driver.extraJavaOptions=-Dhttps.proxyHost=proxy" in asked
    assert "spark.sql.ansi.enabled=false" not in asked
    assert asked[-2:] == [f"{tmp_path}/java", str(spark_home)]
    assert any(part.startswith("spark.jars.excludes=com.*:*,") for part in asked)


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("x\n:: io.delta#delta-storage;4.4.0: not found", ":: io.delta#delta-storage;4.4.0: not found"),
        ("a: not found\nServer access error at url U (refused)", "Server access error at url U (refused)"),
        ("something else", "something else"),
    ],
    ids=["not in the repository", "no network", "unknown"],
)
def test_error_says_why_the_jars_could_not_be_fetched(tmp_path: Path, output: str, reason: str) -> None:
    """The message holds the telling line of the resolution and the folder to put the files into."""

    def fail(_: Sequence[str], __: Path) -> Path:
        raise subprocess.CalledProcessError(1, "spark-submit", output=output, stderr="")

    with pytest.raises(JarsNotFound) as error:
        provide_jars(tmp_path, fail)

    lines = str(error.value).splitlines()
    assert lines[1] == f"  {reason}"
    assert lines[-1] == str(tmp_path)


def test_error_names_a_file_that_the_resolution_did_not_bring(tmp_path: Path) -> None:
    """A resolution that ends well but without a JAR is reported, not taken for success."""
    with pytest.raises(JarsNotFound, match=r"No such file or directory.*delta-spark"):
        provide_jars(tmp_path, lambda _, scratch: scratch)
