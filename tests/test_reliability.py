"""The page of failures and bad input tells which tests there are and how they end."""

import re
import sys
from pathlib import Path
from shutil import copy
from subprocess import run
from types import SimpleNamespace
from typing import Any

import pytest

from guards import GUARDS
from reliability import KINDS, MARK, Report, read_rows

ROOT = Path(__file__).parent.parent


def case_of(test: str, guard: str | None = None) -> Any:
    """A case of a test, as pytest collects it."""
    return SimpleNamespace(
        nodeid=test,
        callspec=SimpleNamespace(params={"guard": guard}),
        iter_markers=lambda kind: [pytest.mark.failure(4).mark] if kind == "failure" else [],
    )


def outcome(test: str, outcome: str, when: str = "call") -> pytest.TestReport:
    """A report as pytest makes it."""
    return pytest.TestReport(test, ("", 0, ""), {}, outcome, None, when)  # type: ignore[arg-type]


def test_page_lists_the_rows_with_their_tests_and_results(tmp_path: Path) -> None:
    """What stands above the mark stays; cases of a test are counted, and the worst of their results is told."""
    page = tmp_path / "page.md"
    page.write_text(f"# By hand\n{MARK}\ntables of before")
    report = Report(page)
    results = {"one_thing[a]": "passed", "one_thing[b]": "failed", "another": "passed"}
    report.pytest_collection_modifyitems([case_of(f"tests/a.py::test_{test}") for test in results])
    for test, result in results.items():
        report.pytest_runtest_logreport(outcome(f"tests/a.py::test_{test}", result))

    report.pytest_sessionfinish()

    text = page.read_text()
    assert text.startswith(f"# By hand\n{MARK}\n")
    assert "of before" not in text
    assert f"1 of {len(read_rows()['failure'])} rows have tests." in text
    row = next(line for line in text.splitlines() if line.startswith("| 4 |"))
    assert row.endswith(
        "| [another](../tests/a.py)<br>[one thing](../tests/a.py) | passed<br>failed (2 cases) |"
    )
    without = sum(len(rows) for rows in read_rows().values()) - 1 + len(GUARDS)
    assert text.count("| no test |  |") == without


def test_row_counts_the_cases_that_bear_its_mark(tmp_path: Path) -> None:
    """Of a test whose mark stands on single parameters others are about other rows, and fail for themselves."""
    report = Report(tmp_path / "page.md")
    marked = {"a": [4], "b": [4, 5], "c": [5], "d": []}
    for name, rows in marked.items():
        item = case_of(f"tests/a.py::test_it[{name}]")
        marks = [pytest.mark.failure(row).mark for row in rows]
        item.iter_markers = lambda kind, marks=marks: marks if kind == "failure" else []
        report.pytest_collection_modifyitems([item])
        report.pytest_runtest_logreport(outcome(item.nodeid, "failed" if name in "cd" else "passed"))

    rows = [line for line in report.tables().splitlines() if "[it](../tests/a.py)" in line]
    assert [row.rpartition("](../tests/a.py)")[2] for row in rows] == [
        " | passed (2 cases) |",
        " | failed (2 cases) |",
    ]


def test_page_keeps_what_it_said_of_a_test_that_a_run_leaves_out(tmp_path: Path) -> None:
    """A test has its new result, unless some of its cases were left out; what is no test any more is forgotten."""
    page = tmp_path / "page.md"
    page.write_text(MARK)
    runs = [
        (
            ["a", "b[1]", "b[2]", "gone"],
            {"a": "failed", "b[1]": "failed", "b[2]": "passed", "gone": "failed"},
        ),
        (["a", "b[1]", "b[2]", "new[1]", "new[2]"], {"a": "passed", "b[1]": "passed", "new[2]": "passed"}),
        (["a", "b[1]", "b[2]", "c[1]", "c[2]", "new[1]", "new[2]"], {"c[1]": "failed", "new[1]": "passed"}),
    ]
    for tests, results in runs:
        report = Report(page)
        report.pytest_collection_modifyitems([case_of(f"tests/a.py::test_{test}") for test in tests])
        for test, result in results.items():
            report.pytest_runtest_logreport(outcome(f"tests/a.py::test_{test}", result))
        report.pytest_sessionfinish()

    row = next(line for line in page.read_text().splitlines() if line.startswith("| 4 |"))
    links = [f"[{name}](../tests/a.py)" for name in ("a", "b", "c", "new")]
    ends = ["passed", "failed (2 cases)", "failed (1 of 2 cases)", "passed (1 of 2 cases)"]
    assert row.endswith(f"| {'<br>'.join(links)} | {'<br>'.join(ends)} |")


def test_page_keeps_what_a_test_found_without_a_guard(tmp_path: Path) -> None:
    """Bars within it are not those of the table."""
    page = tmp_path / "page.md"
    page.write_text(MARK)
    item = case_of("tests/a.py::test_a[without hash_check]", "hash_check")
    ended = outcome(item.nodeid, "passed")
    ended.user_properties = [("found", "AssertionError: 1 | 2")]
    for found in ([ended], []):
        report = Report(page)
        report.pytest_collection_modifyitems([item])
        for each in found:
            report.pytest_runtest_logreport(each)
        report.pytest_sessionfinish()

    row = next(line for line in page.read_text().splitlines() if line.startswith("| `hash_check` |"))
    assert row.endswith("| [a](../tests/a.py) | fails: AssertionError: 1 \\| 2 |")


def test_test_that_was_set_up_in_vain_has_failed(tmp_path: Path) -> None:
    """Its fixture failed, so it never began."""
    report = Report(tmp_path / "page.md")
    report.note("bad_input", 1, "tests/a.py::test_it")
    report.pytest_runtest_logreport(outcome("tests/a.py::test_it", "failed", "setup"))
    assert "| [it](../tests/a.py) | failed |" in report.tables()


def test_page_says_what_a_test_found_without_a_guard(tmp_path: Path) -> None:
    """A test that passes without it stands out."""
    report = Report(tmp_path / "page.md")
    items = {
        "a[without hash_check]": "AssertionError: /tmp/x/lake/joined: 1 | 2",
        "b[x-without hash_check]": None,
    }
    for name, found in items.items():
        item = case_of(f"tests/a.py::test_{name}", "hash_check")
        report.pytest_collection_modifyitems([item])
        ended = outcome(item.nodeid, "passed" if found else "failed")
        ended.user_properties = [("found", found)]
        report.pytest_runtest_logreport(ended)

    row = next(line for line in report.tables().splitlines() if line.startswith("| `hash_check` |"))
    assert row.endswith(
        "| [a](../tests/a.py)<br>[b](../tests/a.py) | fails: AssertionError: joined: 1 \\| 2<br>**passes** |"
    )
    assert "| `deduplication` | A record that comes again changes nothing | no test |  |" in report.tables()


def test_row_that_there_is_not_is_refused(tmp_path: Path) -> None:
    """A marker with a wrong number would be missed by nobody."""
    with pytest.raises(pytest.UsageError, match=r"failure\(99\) is no row of reliability.yaml"):
        Report(tmp_path / "page.md").note("failure", 99, "tests/a.py::test_it")


@pytest.mark.parametrize("kind", KINDS)
def test_page_is_made_of_the_rows_there_are(kind: str) -> None:
    """The page in the tree has every row, in the words of the data file."""
    text = (ROOT / "docs" / "reliability.md").read_text()
    for row in read_rows()[kind]:
        assert f"| {row.number} | {row.what} | {row.then} |" in text


def test_page_links_the_tests_that_bear_the_marks(tmp_path: Path) -> None:
    """Those of each row and guard, and no others, as pytest collects them now; none lacks a test, or has failed."""
    page = Path(copy(ROOT / "docs" / "reliability.md", tmp_path))
    told = results(page)
    command = (sys.executable, "-m", "pytest", "tests", "--collect-only", "-q", f"--reliability={page}")
    collected = run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert collected.returncode == 0, collected.stdout[-2000:]

    again = "bring the page up to date: pytest --collect-only --reliability=docs/reliability.md"
    now = results(page)
    assert {row: [*tests] for row, tests in told.items()} == {row: [*tests] for row, tests in now.items()}, (
        again
    )
    wrong = {
        row
        for row, tests in now.items()
        if "no test" in tests or any(result.startswith(("failed", "**passes**")) for result in tests.values())
    }
    assert wrong == set()


def test_page_of_some_files_is_refused(tmp_path: Path) -> None:
    """It would lose what it says of all others."""
    page = tmp_path / "page.md"
    page.write_text(f"{MARK}\n")

    ended = run(
        [sys.executable, "-m", "pytest", "tests/places", f"--reliability={page}"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert ended.returncode == pytest.ExitCode.USAGE_ERROR
    assert "Choose tests by -k or -m, not by their paths" in ended.stderr
    assert page.read_text() == f"{MARK}\n"


def results(page: Path) -> dict[str, dict[str, str]]:
    """What a page says of each row's tests, by heading and first cell of the row; a row without tests has none."""
    found = {}
    for table in page.read_text().partition(MARK)[2].split("\n## ")[1:]:
        for line in table.splitlines()[6:]:
            if line:
                _, row, *_, tests, told, _ = (cell.strip() for cell in re.split(r"(?<!\\)\|", line))
                found[f"{table.splitlines()[0]} {row}"] = dict(
                    zip(tests.split("<br>"), told.split("<br>"), strict=True)
                )
    return found
