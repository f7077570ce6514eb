"""The table of targets with what was measured, as Markdown and for a terminal."""

from collections.abc import Sequence
from pathlib import Path

from bench.targets.measures import measured
from bench.targets.results import Result
from bench.targets.sought import Measured
from bench.targets.targets import TARGETS, Target

HEADER = ("row", "what", "must", "aim", "measured", "reached", "when", "commit", "others' CPU")
"""`others' CPU`: share of the processors that the rest of the machine used meanwhile."""
QUIET = 0.05
"""Above this share of the processors in others' hands a time is not to be trusted."""

Cells = tuple[str, ...]


def rows(results: Sequence[Result], size: float = 1, numbers: Sequence[int] | None = None) -> list[Cells]:
    """Return a line for each target, or for those of some rows of the table, with its newest measurement."""
    wanted = [target for target in TARGETS if numbers is None or target.row in numbers]
    return [_row(target, measured(target, results, size)) for target in wanted]


def markdown(lines: Sequence[Cells], header: Cells = HEADER) -> str:
    """Return lines under a header as a table of Markdown."""
    every = [header, tuple("---" for _ in header), *lines]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in every)


def marks(name: str) -> tuple[str, str]:
    """The lines of a page between which a table stands."""
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"


def put_into(page: Path, table: str, name: str = "targets") -> None:
    """Put a table between its marks on a page, in place of the one that stands there. Raises `ValueError`."""
    first, last = marks(name)
    before, begin, rest = page.read_text().partition(first)
    _, end, behind = rest.partition(last)
    if not begin or not end:
        raise ValueError(
            f"{page}: expected lines `{first}` and `{last}` to put the table between; write them there"
        )
    page.write_text(f"{before}{begin}\n\n{table}\n{end}{behind}")


def _row(target: Target, found: Measured | None) -> Cells:
    known = (str(target.row), target.what, target.bound(target.must), target.bound(target.aim))
    if found is None:
        return (*known, "not measured", "", "", "", "")
    return (
        *known,
        f"{target.shown(found.value)} ({found.note})",
        target.reached(found.value),
        ", ".join(dict.fromkeys(f"{result.date:%Y-%m-%d %H:%M}" for result in found.results)),
        ", ".join(dict.fromkeys(result.commit for result in found.results)),
        f"{found.busy:.0%}" + (", busy" if found.busy > QUIET else ""),
    )
