"""Runs `lakejoin show`: prints rows of a table of the lake, for people, or as csv and JSON lines for programs."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console

from lakejoin.orchestration.cli import options
from lakejoin.orchestration.cli.options import AsOfBatch, Config, Form
from lakejoin.orchestration.cli.output_file import output_file
from lakejoin.orchestration.cli.terminal import console, print_rows, say, say_data

if TYPE_CHECKING:
    from lakejoin.orchestration.cli.show_rows import Shown

ROWS = 20
"""How many rows are shown to a person who does not say how many."""


def show(  # noqa: PLR0913 - one parameter for each option
    config: Config,
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help="A table (its live rows) or its .rows, .changes or .versions; a stream or its .records; a join or "
            "its .subscription_log, .subscription_store, .response_log, .changelog, .history or .buffer; quarantine.",
        ),
    ],
    *,
    where: Annotated[
        str | None, typer.Option(metavar="SQL", help="Rows that this SQL condition holds for.")
    ] = None,
    key: Annotated[
        str | None, typer.Option(metavar="K", help="Rows of this key; a composite one is a JSON array.")
    ] = None,
    prefix: Annotated[
        str | None,
        typer.Option(
            metavar="P",
            help="Rows whose key begins with this text, or with these first columns of a composite one.",
        ),
    ] = None,
    key_from: Annotated[
        str | None, typer.Option(metavar="K", help="Rows from this key on; first columns will do.")
    ] = None,
    key_to: Annotated[
        str | None, typer.Option(metavar="K", help="Rows up to this key; first columns will do.")
    ] = None,
    time_from: Annotated[
        str | None, typer.Option(metavar="T", help="Rows with an event time, or valid, from this time on.")
    ] = None,
    time_to: Annotated[
        str | None, typer.Option(metavar="T", help="Rows with an event time, or valid, up to this time.")
    ] = None,
    reverse: Annotated[bool, typer.Option("--reverse", help="The last row first.")] = False,
    as_of_batch: AsOfBatch = None,
    as_of: Annotated[
        str | None,
        typer.Option(
            metavar="TIMESTAMP",
            help="A versioned table, or a result with a history, as it was at this time; UTC without a zone.",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help=f"At most N rows; by default {ROWS} as a table, else all."),
    ] = None,
    form: Form = "table",
    output: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE", dir_okay=False, help="Write to this file instead."),
    ] = None,
    internal: Annotated[
        bool, typer.Option("--internal", help="With the internal columns, whose names begin with _lj_.")
    ] = False,
) -> None:
    """Show rows of a table of the lake.

    Sorted by key, as the last finished batch left them, whatever is being written meanwhile.
    """
    from lakejoin.orchestration.cli.show_rows import Asked, open_shown
    from lakejoin.orchestration.show.key_ranges import Range

    chosen = Range(key, prefix, key_from, key_to, time_from, time_to, reverse)
    some = ROWS if limit is None and form == "table" else limit
    time = _timestamp(as_of)
    asked = Asked(table, chosen, where, as_of_batch, time, everything=some is None, internal=internal)
    shown = open_shown(options.load_pipeline(config), asked)
    with _conditions_blamed(where):
        hand_out(shown, form, limit, output)


def _timestamp(text: str | None) -> datetime | None:
    if text is None:
        return None
    from lakejoin.orchestration.errors import WrongUsage

    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise WrongUsage(f"--as-of {text!r}: expected a timestamp such as 2013-01-01T10:15:00Z") from error
    return time if time.tzinfo else time.replace(tzinfo=UTC)


@contextmanager
def _conditions_blamed(where: str | None) -> Iterator[None]:
    """Blame the condition for what Spark says while the rows are read: a division by zero, a failed cast."""
    from pyspark.errors import PySparkException

    from lakejoin.orchestration.errors import WrongUsage
    from lakejoin.orchestration.spark_errors import quiet_query_context

    if where is None:
        yield
        return
    quiet_query_context()
    try:
        yield
    except PySparkException as error:
        raise WrongUsage(f"--where {where!r}: {str(error).splitlines()[0]}") from None


def hand_out(
    shown: "Shown", form: Form, limit: int | None, output: Path | None = None, *, rows: int = ROWS
) -> None:
    """Print rows for people or write them for programs. `rows`: how many people see where there is no limit."""
    if form == "table":
        _print(shown, rows if limit is None else limit, output)
    else:
        _write(shown, form, limit, output)


def _print(shown: "Shown", limit: int, output: Path | None) -> None:
    rows = list(shown.texts(limit + 1))  # as many as asked for
    with _console(output) as out:
        if rows:
            print_rows(out, shown.header, rows[:limit])
        if len(rows) > limit:
            say(f"The first {limit} rows of {shown.name}; --limit shows more, --format csv all.", out)
        elif not rows:
            say(f"{shown.name} has no such rows.", out)


@contextmanager
def _console(output: Path | None) -> Iterator[Console]:
    if output is None:
        yield console()
        return
    with output_file("--output", output) as file:
        yield console(TextIOWrapper(file, encoding="utf-8", write_through=True))


def _write(shown: "Shown", form: Literal["csv", "jsonl"], limit: int | None, output: Path | None) -> None:
    text = shown.lines(form, limit)
    if output is None:
        say_data(text)
        return
    with output_file("--output", output) as file:
        file.writelines(line.encode() for line in text)
