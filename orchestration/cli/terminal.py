"""Prints tables and lines for a person at a terminal, and plain text without colours or boxes for everything else.

Every text passes `printable` here, so no caller has to ask where it comes from.
"""

import json
import logging
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text

from lakejoin.transforms.model.printable_text import printable, printable_lines

_NUMBER = re.compile(r"-?[0-9,]*\.?[0-9]+")

Cell = str | int | float
Row = Sequence[Cell]


def console(file: TextIO | None = None) -> Console:
    """Return a console on a file, or on standard output as it is now; it never guesses colours for words."""
    return Console(file=file, highlight=False, markup=False, emoji=False)


def say(text: str, out: Console | None = None) -> None:
    """Print a line, on standard output by default; a terminal wraps it, nothing else does."""
    (out or console()).print(printable(text), soft_wrap=True)


def complain(text: str) -> None:
    """Print a line on standard error."""
    typer.echo(printable(text), err=True)


def complain_lines(text: str) -> None:
    """Print several lines on standard error."""
    typer.echo(printable_lines(text.rstrip("\n")), err=True)


class PrintableLines(logging.Formatter):
    """Formats what is logged, by whatever package, as printable lines."""

    def format(self, record: logging.LogRecord) -> str:
        """Return message and traceback."""
        return printable_lines(super().format(record).rstrip("\n"))


def say_json(value: Any) -> None:
    """Print a value as JSON: exact data, of which JSON itself escapes all but ASCII."""
    typer.echo(json.dumps(value, indent=2))


def say_data(lines: Iterable[str]) -> None:
    """Write the lines of a file to standard output, each with its end, byte by byte; on a terminal printable."""
    if sys.stdout.isatty():
        for line in lines:
            typer.echo(printable(line.rstrip("\r\n"), None))
        return
    sys.stdout.buffer.writelines(line.encode() for line in lines)
    sys.stdout.buffer.flush()


def print_table(title: str, header: Sequence[str], rows: Iterable[Row]) -> None:
    """Print rows under a title: a table within the terminal's width, or aligned columns of any width."""
    out, names = console(), [printable(name) for name in header]
    texts = [[printable(_text(cell)) for cell in row] for row in rows]
    if out.is_terminal:
        out.print(_table(printable(title), names, texts))
        return
    say(title)
    for line in _aligned([names, *texts]):
        out.print(f"  {line}", soft_wrap=True)


def print_rows(out: Console, header: Sequence[str], rows: Sequence[Sequence[str | None]]) -> None:
    """Print rows of a Delta table, null as `null`; where they are wider than a terminal, a line a column."""
    names = [printable(name) for name in header]
    texts = [["null" if cell is None else printable(cell) for cell in row] for row in rows]
    lines = _aligned([names, *texts])
    if not out.is_terminal:
        for line in lines:
            out.print(line, soft_wrap=True)
    elif max(map(len, lines), default=0) + 3 * len(header) < out.width:
        out.print(_table("", names, texts))
    else:
        width = max(map(len, names))
        for row in texts:
            out.rule()
            for name, text in zip(names, row, strict=True):
                out.print(f"{name:>{width}}  {text}", soft_wrap=True)


Counts = Mapping[str, Mapping[str, int]]
"""Numbers by name and reason."""


def print_counts(title: str, what: str, counts: Counts, order: Mapping[str, bool]) -> None:
    """Print counts, a line a name, or a column a name where a terminal is too narrow for the other way.

    `order`: the reasons to print, true for those that are printed even if they never occurred.
    """
    reasons = [r for r, always in order.items() if always or any(found.get(r) for found in counts.values())]
    rows: list[Row] = [
        (name, *[found.get(reason, 0) for reason in reasons]) for name, found in counts.items()
    ]
    header = [what, *reasons]
    out = console()
    width = max(map(len, _aligned([header, *[[_text(cell) for cell in row] for row in rows]])))
    if out.is_terminal and width + 2 * len(header) > out.width:
        columns = [tuple(column) for column in zip(header, *rows, strict=True)]
        header, rows = [str(cell) for cell in columns[0]], list(columns[1:])
    if counts:
        print_table(title, header, rows)


class Bar:
    """A bar of batches with the stage under way."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress, self._task = progress, task

    def describe(self, stage: str) -> None:
        """Show what is being done; stages that run beside each other may call it at once."""
        self._progress.update(self._task, description=printable(stage))

    def advance(self) -> None:
        """Count a batch as done."""
        self._progress.advance(self._task)


@contextmanager
def progress_bar(description: str, total: int | None) -> Iterator[Bar]:
    """Show a bar of `total` batches (None: unknown) while the block runs; nothing where no terminal is."""
    out = console()
    numbers, stage = (
        (MofNCompleteColumn(), BarColumn(24), TimeElapsedColumn()),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(
        SpinnerColumn(), *numbers, stage, console=out, transient=True, disable=not out.is_terminal
    ) as progress:
        yield Bar(progress, progress.add_task(printable(description), total=total))


def _table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(title=title or None, title_justify="left", title_style="bold")
    for name, right in zip(header, _numeric(header, rows), strict=True):
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    for cells in rows:
        table.add_row(*[Text(cell) for cell in cells])
    return table


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of columns as wide as their widest cell; the first row is the header."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    numeric = _numeric(rows[0], rows[1:])
    return [
        "  ".join(
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in rows
    ]


def _numeric(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[bool]:
    """Which columns hold nothing but numbers, and are read from the right."""
    return [bool(rows) and all(_NUMBER.fullmatch(row[index]) for row in rows) for index in range(len(header))]


def _text(cell: Cell) -> str:
    match cell:
        case float():
            return f"{cell:,.1f}"
        case int():
            return f"{cell:,}"
        case _:
            return cell
