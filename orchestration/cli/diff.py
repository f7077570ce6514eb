"""Runs `lakejoin diff`: says what two lakes, or two batches of one, hold differently."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from lakejoin.orchestration.cli import options
from lakejoin.orchestration.cli.differences import print_differences
from lakejoin.orchestration.cli.exit_codes import FAILED
from lakejoin.orchestration.cli.terminal import say, say_json

if TYPE_CHECKING:
    from lakejoin.orchestration.verification.diff import Side

_SIDE = "CONFIG[@B]"


def diff(
    one: Annotated[
        str, typer.Argument(metavar=_SIDE, help="A configuration file, as batch B left its lake.")
    ],
    other: Annotated[
        str, typer.Argument(metavar=_SIDE, help="The same file at another batch, or another one.")
    ],
    result: Annotated[
        str | None,
        typer.Argument(metavar="[RESULT]", help="A join, groups or a table; by default all that both have."),
    ] = None,
    *,
    form: Annotated[
        Literal["table", "json"], typer.Option("--format", help="For people, or JSON.")
    ] = "table",
) -> None:
    """Show what two lakes, or two batches of one, hold differently: rows, and cells by column.

    The exit code is 1 where anything differs. Starts no Spark.
    """
    from lakejoin.orchestration.errors import unknown
    from lakejoin.orchestration.verification.diff import comparable
    from lakejoin.orchestration.verification.diff import diff as compared

    sides = (_side(one), _side(other))
    names = comparable(*sides)
    if result is not None and result not in names:
        raise unknown("join, groups or table that both have", result, names)
    found = []
    for each in compared(*sides, [result] if result else names):
        found.append(each)
        if form == "json":
            continue
        held = each.comparison
        say(f"{each.name}: {'equal' if held.equal else 'differs'}, {held.rows:,} rows in {sides[1].called}")
        print_differences(held, ("first", "second"))
        for column in each.left_out:
            say(f"  not compared: {column}, which only one of the two has, or each with a type of its own")
    if form == "json":
        told: list[dict[str, Any]] = [
            {"name": each.name, "not_compared": list(each.left_out)} | each.comparison.plain()
            for each in found
        ]
        say_json(told)
    if not all(each.comparison.equal for each in found):
        raise typer.Exit(FAILED)


def _side(text: str) -> "Side":
    """Open a configuration file, or a file and a batch. Raises `WrongUsage`."""
    from lakejoin.orchestration.errors import WrongUsage
    from lakejoin.orchestration.verification.diff import Side

    file, _, number = text.rpartition("@")
    batch = int(number) if file and number.isdigit() else None
    path = Path(text if batch is None else file)
    if not path.is_file():
        raise WrongUsage(
            f"{path}: no such file; expected a configuration, and behind an @ the number of a batch"
        )
    return Side.of(options.load_pipeline(path), batch)
