"""Runs each test that is marked with a guard once more without it, and then expects the test to fail.

So a guard whose removal no test would notice cannot stay unnoticed itself: every guard must have such a test.
"""

from collections.abc import Iterator
from typing import Any, get_args

import pytest

from lakejoin.storage.errors import LakejoinError
from lakejoin.transforms.model.guards import Guard, without

GUARDS: tuple[Guard, ...] = get_args(Guard)
_PARAMETER = "guard"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Add to a marked test a case for each guard that it would miss, `slow` where the marker says so.

    Raises `UsageError` for an unknown guard.
    """
    markers = [*metafunc.definition.iter_markers("guard")]
    for guard in [marker.args[0] for marker in markers]:
        if guard not in GUARDS:
            raise pytest.UsageError(
                f"{metafunc.definition.nodeid}: {guard!r} is no guard; there are {GUARDS}"
            )
    if markers:
        metafunc.fixturenames.append(_PARAMETER)
        metafunc.parametrize(_PARAMETER, [pytest.param(None, id="guarded"), *map(_case, markers)])


def _case(marker: pytest.Mark) -> Any:
    slow = [pytest.mark.slow] if marker.kwargs.get("slow") else []
    return pytest.param(marker.args[0], id=f"without {marker.args[0]}", marks=slow)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[None]:
    """Turn the outcome round where a guard is out; what the test found stands in its report."""
    guard = removed(pyfuncitem)
    if guard is None:
        return (yield)
    try:
        with without(guard):
            yield
    # what a test or the product itself finds wrong; anything else is an accident, and no finding
    except (AssertionError, LakejoinError, pytest.fail.Exception) as error:
        pyfuncitem.user_properties.append(("found", f"{type(error).__name__}: {_first_line(error)}"))
        return True
    pytest.fail(f"this test passes without the guard {guard}, so it does not show what the guard is for")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print which test noticed that which guard was out, and what it said."""
    reports = terminalreporter.getreports("passed")
    found = [
        (report.nodeid, text)
        for report in reports
        for name, text in report.user_properties
        if name == "found"
    ]
    if found:
        terminalreporter.section("guards that were taken out")
    for test, text in found:
        terminalreporter.write_line(f"{test}: {text}")


def removed(item: pytest.Item) -> Guard | None:
    """The guard that a case of a test runs without."""
    case = getattr(item, "callspec", None)
    return case.params.get(_PARAMETER) if case else None


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), "")
