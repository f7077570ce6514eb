"""Runs `lakejoin explain`: says why a row is as it is, or why it is not there."""

from typing import Annotated, Literal

import typer

from lakejoin.orchestration.cli import options
from lakejoin.orchestration.cli.options import AsOfBatch, Config
from lakejoin.orchestration.cli.terminal import say, say_data, say_json


def explain(  # noqa: PLR0913 - one parameter for each option
    config: Config,
    name: Annotated[str, typer.Argument(metavar="RESULT", help="A join or groups, a table or a stream.")],
    *,
    key: Annotated[
        str | None, typer.Option(metavar="K", help="Key of the row; a composite one is a JSON array.")
    ] = None,
    record: Annotated[
        str | None,
        typer.Option(
            metavar="FILE[:LINE]", help="The row of this record of a table or stream, or a whole file."
        ),
    ] = None,
    column: Annotated[
        str | None, typer.Option(metavar="C", help="Only where the value of this column comes from.")
    ] = None,
    impact: Annotated[
        bool, typer.Option("--impact", help="What is made of the row, instead of what it is made of.")
    ] = False,
    raw: Annotated[bool, typer.Option("--raw", help="With the text of each record, from its file.")] = False,
    as_of_batch: AsOfBatch = None,
    form: Annotated[
        Literal["tree", "json", "html"],
        typer.Option("--format", help="Indented lines, JSON, or a page for a browser."),
    ] = "tree",
) -> None:
    """Say why a row is as it is, or why there is none.

    Follows it down to the records of the sources: which were applied, which came late or out of order,
    what the left row asked and what it was answered. Starts no Spark.
    """
    from lakejoin.orchestration.errors import WrongUsage
    from lakejoin.orchestration.explain.explain import Question, explained

    if (key is None) == (record is None):
        raise WrongUsage("give either --key or --record")
    asked = Question(name, key or record or "", as_of_batch, column, impact, raw, record is not None)
    found = explained(options.load_pipeline(config), asked)
    if form == "json":
        say_json(found.plain())
    elif form == "html":
        from lakejoin.orchestration.explain.page import render_page

        say_data([render_page(found)])
    else:
        for line in found.lines():
            say(line)
