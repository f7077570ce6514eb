"""Prints what differs between two tables: counts by kind and column, and the first rows."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lakejoin.orchestration.cli.terminal import say

if TYPE_CHECKING:
    from lakejoin.orchestration.verification.comparison import Comparison, Difference


def print_differences(found: "Comparison", names: tuple[str, str]) -> None:
    """Print them; `names` says what the first and the second table are."""
    kinds = ", ".join(f"{number:,} {kind}" for kind, number in sorted(found.kinds.items()))
    columns = ", ".join(f"{name} in {number:,}" for name, number in found.columns.items())
    if kinds:
        say(f"  {kinds}{f' ({columns})' if columns else ''}")
    for difference in found.first:
        say(f"  {_line(difference, names)}")
    if len(found.first) < sum(found.kinds.values()):
        say(f"  … the first {len(found.first)} are shown")


def _line(one: "Difference", names: Sequence[str]) -> str:
    key = ", ".join(f"{name} {_shown(value)}" for name, value in one.key.items())
    cells = "; ".join(
        f"{name}: {names[0]} {_shown(a)}, {names[1]} {_shown(b)}" for name, (a, b) in one.cells.items()
    )
    return f"{one.kind} {key}{f': {cells}' if cells else ''}"


def _shown(value: Any) -> str:
    return "null" if value is None else str(value)
