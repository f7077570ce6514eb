"""`lakejoin show`: rows of a table of the lake, for people, or as csv and JSON lines for programs."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Literal

import typer
from rich.console import Console

from orchestration.cli import options
from orchestration.cli.options import Config
from orchestration.cli.terminal import console, print_rows

if TYPE_CHECKING:
    from orchestration.config import Pipeline
    from orchestration.view import View

ROWS = 20
"""How many rows are shown to a person who does not say how many."""


def show(  # noqa: PLR0913 - one parameter for each option
    config: Config,
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help="A table (its live rows) or its .rows, .changes or .versions; a stream or its .records; a join or "
            "its .subscription_log, .subscription_store, .response_log, .changelog or .buffer; quarantine.",
        ),
    ],
    *,
    where: Annotated[
        str | None, typer.Option(metavar="SQL", help="Rows that this SQL condition holds for.")
    ] = None,
    key: Annotated[
        str | None, typer.Option(metavar="K", help="Rows of this key; a composite one is a JSON array.")
    ] = None,
    as_of_batch: Annotated[
        int | None, typer.Option(metavar="B", help="The table as batch B left it; by default the last one.")
    ] = None,
    as_of: Annotated[
        str | None,
        typer.Option(
            metavar="TIMESTAMP", help="A versioned table as it was at this time; UTC without a zone."
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help=f"At most N rows; by default {ROWS} as a table, else all."),
    ] = None,
    form: Annotated[
        Literal["table", "csv", "jsonl"],
        typer.Option("--format", help="For people, RFC 4180 with \\N for null, or JSON lines."),
    ] = "table",
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
    pipeline = options.load_pipeline(config)
    view = _open(pipeline, table, as_of_batch, _timestamp(as_of))
    if where is not None:
        view = view.where(where)
    if key is not None:
        view = view.of_key(key)
    with _conditions_blamed(where):
        if form == "table":
            _print(view, ROWS if limit is None else limit, internal=internal, output=output)
        else:
            _write(view, form, limit, internal=internal, output=output)


def _timestamp(text: str | None) -> datetime | None:
    if text is None:
        return None
    from orchestration.errors import WrongUsage

    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise WrongUsage(f"--as-of {text!r}: expected a timestamp such as 2013-01-01T10:15:00Z") from error
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _open(pipeline: "Pipeline", table: str, batch: int | None, time: datetime | None) -> "View":
    """Open a table by name. What is wrong with name or batch is said before Spark is started."""
    from orchestration.cut import check_kept, published_cut
    from orchestration.show import find_view
    from orchestration.time_views import as_of_view
    from storage.lake import Lake
    from storage.plan import Journal
    from storage.state import State

    lake = Lake(pipeline.lake)
    view = find_view(pipeline, table) if time is None else as_of_view(pipeline, table, time)
    cut = published_cut(Journal(lake), batch)
    if batch is not None:
        check_kept(lake, cut, table.partition(".")[0])
    return view(State(options.open_session(pipeline), lake, cut))


@contextmanager
def _conditions_blamed(where: str | None) -> Iterator[None]:
    """Blame the condition for what Spark says while the rows are read: a division by zero, a failed cast."""
    from pyspark.errors import PySparkException

    from orchestration.errors import WrongUsage
    from orchestration.spark_failures import quiet_query_context

    if where is None:
        yield
        return
    quiet_query_context()
    try:
        yield
    except PySparkException as error:
        raise WrongUsage(f"--where {where!r}: {str(error).splitlines()[0]}") from None


def _print(view: "View", limit: int, *, internal: bool, output: Path | None) -> None:
    from orchestration.formats import texts

    rows = texts(
        view.shown(internal=internal).limit(limit + 1), view.structs
    ).collect()  # as many as asked for
    with _console(output) as out:
        print_rows(out, list(rows[0].asDict()) if rows else [], [tuple(row) for row in rows[:limit]])
        if len(rows) > limit:
            out.print(f"The first {limit} rows of {view.name}; --limit shows more, --format csv all.")
        elif not rows:
            out.print(f"{view.name} has no such rows.")


@contextmanager
def _console(output: Path | None) -> Iterator[Console]:
    if output is None:
        yield console()
        return
    with _replacing(output) as file:
        yield console(TextIOWrapper(file, encoding="utf-8", write_through=True))


def _write(
    view: "View", form: Literal["csv", "jsonl"], limit: int | None, *, internal: bool, output: Path | None
) -> None:
    from orchestration.formats import lines

    rows = view.shown(internal=internal)
    text = lines(rows if limit is None else rows.limit(limit), form, view.structs)
    if output is None:
        sys.stdout.buffer.writelines(line.encode() for line in text)
        sys.stdout.buffer.flush()
        return
    with _replacing(output) as file:
        file.writelines(line.encode() for line in text)


@contextmanager
def _replacing(output: Path) -> Iterator[BinaryIO]:
    """Write a file beside `output` and put it in its place once it is complete."""
    draft = output.with_name(f".{output.name}.draft")
    try:
        with draft.open("wb") as file:
            yield file
        draft.replace(output)
    finally:
        draft.unlink(missing_ok=True)
