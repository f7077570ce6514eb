"""Writes the tables of docs/reliability.md: each failure, kind of bad input and guard, its tests and their results.

A test says which rows it is about by its markers, `failure(row)` and `bad_input(row)`, and which guards it would miss
by `guard(name)`; what a row is about stands in reliability.yaml. `pytest --reliability=FILE` replaces what the page has
below its mark.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from guards import GUARDS, removed

MARK = "<!-- Below, `make reliability` writes what the tests found. -->"
ROWS = Path(__file__).with_name("reliability.yaml")
KINDS = {"failure": "Failures", "bad_input": "Bad input"}
"""Markers, and the headings of their tables."""
_SHOWN = 120
"""Of what a test says without a guard, so many characters."""
_NOT_RUN = "not run"
_ORDER = ("failed", "skipped", "passed")
"""Of the results of one test's cases, the first of these tells most."""


@dataclass(frozen=True)
class Row:
    """Something that happens, and what becomes of it."""

    number: int
    what: str
    then: str


def read_rows(path: Path = ROWS) -> Mapping[str, Sequence[Row]]:
    """Return the rows of each kind, numbered from 1 in their order."""
    kinds = yaml.safe_load(path.read_text())
    return {
        kind: [Row(number, row["what"], row["then"]) for number, row in enumerate(kinds[kind], start=1)]
        for kind in KINDS
    }


class Report:
    """Collects which tests are about which rows, and how they end.

    They take hours, so a run of some of them (`-k`) brings the page up to date: of the others it keeps what it said.
    Where a run leaves out some cases of a test, and the others pass, it says of it what it said, too. A case counts for
    the rows that it bears the mark of itself, or by its test.
    """

    def __init__(self, page: Path) -> None:
        self._page = page
        self._rows = read_rows()
        self._said: Mapping[tuple[str, str], str] = {}
        """What the page says of a test, by the first cell of its row and the test's link."""
        self._marked: dict[tuple[str, int], dict[str, set[str]]] = {}
        """The tests of each row, with those of their cases that are about it."""
        self._results: dict[str, str] = {}
        """How each case of a test ended."""
        self._unguarded: dict[str, str] = {}
        """Cases of tests, by their guard that is out."""
        self._found: dict[str, str] = {}
        """What they say without it."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Note the rows of every test, also of one that this run leaves out: the page says so.

        Raises `UsageError` for a row that there is not.
        """
        for item in items:
            if guard := removed(item):
                self._unguarded[item.nodeid] = guard
            for kind in KINDS:
                for marker in item.iter_markers(kind):
                    self.note(kind, *marker.args, item.nodeid)

    def note(self, kind: str, number: int, case: str) -> None:
        """Note that a case of a test is about a row."""
        if not 1 <= number <= len(self._rows[kind]):
            raise pytest.UsageError(f"{case}: {kind}({number}) is no row of {ROWS.name}")
        self._marked.setdefault((kind, number), {}).setdefault(_name(case), set()).add(case)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note how a case of a test ended; what is wrong before or behind it counts as well."""
        if report.when == "call" and report.nodeid in self._unguarded:
            said = dict(report.user_properties).get("found")
            self._found[report.nodeid] = f"fails: {said}" if report.passed else "**passes**"
        if report.when == "call" or report.outcome != "passed":
            self._results[report.nodeid] = min(
                report.outcome, self._results.get(report.nodeid, "passed"), key=_ORDER.index
            )

    def pytest_sessionfinish(self) -> None:
        """Write the page."""
        head, _, tables = self._page.read_text().partition(MARK)
        self._said = _said(tables)
        self._page.write_text(f"{head}{MARK}\n\n{self.tables()}")

    def tables(self) -> str:
        """The tables in Markdown."""
        tables = [line for kind, title in KINDS.items() for line in self._table(kind, title)]
        return "\n".join([*tables, *self._guards()])

    def _table(self, kind: str, title: str) -> Iterable[str]:
        rows = self._rows[kind]
        tested = sum((kind, row.number) in self._marked for row in rows)
        yield from (f"## {title}", "", f"{tested} of {len(rows)} rows have tests.", "")
        yield from ("| # | what happens | what becomes of it | tests | result |", "|---|---|---|---|---|")
        for row in rows:
            tests = sorted(self._marked.get((kind, row.number), {}).items())
            links = "<br>".join(_link(test) for test, _ in tests) or "no test"
            results = "<br>".join(self._result(row.number, test, cases) for test, cases in tests)
            yield f"| {row.number} | {row.what} | {row.then} | {links} | {results} |"
        yield ""

    def _guards(self) -> Iterable[str]:
        what = yaml.safe_load(ROWS.read_text())["guard"]
        yield from ("## Guards", "", "Each test passes with the guard, and is run once more without it.", "")
        yield from ("| guard | what it sees to | tests | without it |", "|---|---|---|---|")
        for guard in GUARDS:
            cases = sorted(case for case, out in self._unguarded.items() if out == guard)
            links = "<br>".join(_link(_name(case)) for case in cases) or "no test"
            found = "<br>".join(self._finding(guard, case) for case in cases)
            yield f"| `{guard}` | {what[guard]} | {links} | {found} |"
        yield ""

    def _result(self, number: int, test: str, cases: Collection[str]) -> str:
        results = [result for case, result in self._results.items() if case in cases]
        said = self._said.get((str(number), _link(test)), _NOT_RUN)
        if not results:
            return said
        worst = next(result for result in _ORDER if result in results)
        if len(results) < len(cases):
            some = f"{worst} ({len(results)} of {len(cases)} cases)"
            return some if worst != "passed" or said == _NOT_RUN else said
        return worst if len(cases) < 2 else f"{worst} ({len(cases)} cases)"

    def _finding(self, guard: str, case: str) -> str:
        if case in self._found:
            return _cell(self._found[case])
        return self._said.get((f"`{guard}`", _link(_name(case))), _NOT_RUN)


def _said(tables: str) -> dict[tuple[str, str], str]:
    """What the tables of a page say of each test, by the first cell of its row and the test's link."""
    said = {}
    for line in tables.splitlines():
        if line.startswith("| "):
            _, row, *_, tests, results, _ = (cell.strip() for cell in re.split(r"(?<!\\)\|", line))
            said |= {
                (row, test): result
                for test, result in zip(tests.split("<br>"), results.split("<br>"), strict=False)
            }
    return said


def _cell(text: str) -> str:
    """A text as it can stand in a table, its machine's own paths left out."""
    short = re.sub(r"(?<!\S)/\S*/", "", text)[:_SHOWN].replace("|", "\\|").replace("<", "&lt;")
    return short if len(short) < _SHOWN else f"{short} ..."


def _name(nodeid: str) -> str:
    """A test without the parameters of its cases."""
    return nodeid.partition("[")[0]


def _link(test: str) -> str:
    file, _, name = test.rpartition("::")
    return f"[{name.removeprefix('test_').replace('_', ' ')}](../{file})"
