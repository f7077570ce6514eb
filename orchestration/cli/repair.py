"""Runs `lakejoin repair`: says what is damaged, and computes tables and joins anew."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from lakejoin.orchestration.cli import options
from lakejoin.orchestration.cli.exit_codes import FAILED
from lakejoin.orchestration.cli.options import Config
from lakejoin.orchestration.cli.progress import follow
from lakejoin.orchestration.cli.terminal import Row, print_table, say

if TYPE_CHECKING:
    from lakejoin.orchestration.runs.repair import Damage


def repair(
    config: Config,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[TABLE|JOIN]...", help="What to compute anew.")
    ] = None,
    *,
    replan: Annotated[
        bool,
        typer.Option(
            "--replan",
            help="Give up the batch under way, whose input is gone; what is left of it is read next.",
        ),
    ] = False,
) -> None:
    """Find what is damaged, or compute tables and joins anew from what the lake keeps of its input.

    Without names every table is looked at: its log, the sizes of its files, how far it is by its own account. With
    names, a table's folded rows and history are made from its changes, a join and the joins over it from the rows of
    their tables. What is in the way is moved to `_aside` in the lake, nothing is removed.
    """
    from lakejoin.orchestration.errors import WrongUsage
    from lakejoin.orchestration.runs.abandon import abandon
    from lakejoin.orchestration.runs.repair import examine
    from lakejoin.orchestration.runs.repair import repair as mend

    pipeline = options.load_pipeline(config)
    if not names and not replan:
        _print(examine(pipeline), str(config))
        return
    if replan and names:
        raise WrongUsage("--replan gives up a batch as a whole; repair tables and joins after it")
    work = abandon if replan else partial(mend, names=names or ())
    session = partial(options.open_session, pipeline)
    follow(lambda progress: work(pipeline, session, progress=progress), None)


def _print(found: "list[Damage]", config: str) -> None:
    if not found:
        say(
            "Nothing is damaged, as far as logs and sizes of files tell; `lakejoin check --full` reads the rows."
        )
        return
    rows: list[Row] = [
        (damage.table, damage.what, f"repair {damage.name}" if damage.name else "restore from a copy")
        for damage in found
    ]
    print_table("Damaged", ["table", "what", "what helps"], rows)
    if names := sorted({damage.name for damage in found if damage.name}):
        say(f"lakejoin repair {config} {' '.join(names)}")
    raise typer.Exit(FAILED)
