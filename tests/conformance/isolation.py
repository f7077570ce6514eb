"""Keeps a case whose run raises from taking the other cases with it."""

import sys
import traceback
from collections.abc import Callable, Sequence

from conformance.case import Case

_RAISED = "raised "

Run = Callable[[Sequence[Case]], dict[str, str]]
"""Runs cases and returns the first difference of each that failed, by its name."""


def run_apart(cases: Sequence[Case], run: Run) -> dict[str, str]:
    """Run cases together and return the failures; where that raises, run halves of them, until who raises is alone.

    A case that raises is one failed case. Cases that raise together but not apart fail under the name of the first.
    """
    if not cases:
        return {}
    try:
        return run(cases)
    except Exception as error:  # noqa: BLE001 - a case may raise anything
        if len(cases) == 1:
            traceback.print_exception(error, file=sys.stderr)
            return {cases[0].name: what_was_raised(error)}
        together = error
    middle = len(cases) // 2
    failures = run_apart(cases[:middle], run) | run_apart(cases[middle:], run)
    if not any(difference.startswith(_RAISED) for difference in failures.values()):
        traceback.print_exception(together, file=sys.stderr)
        others = ", ".join(case.name for case in cases[1:])
        failures[cases[0].name] = f"{what_was_raised(together)}, only together with {others}"
    return failures


def what_was_raised(error: Exception) -> str:
    """Return the kind of an error and the first line of what it says."""
    return f"{_RAISED}{type(error).__name__}: {(str(error).splitlines() or ['nothing was said'])[0]}"
