"""Runs `lakejoin certify`: writes down what a lake holds, holds a lake against that, and makes it a second time."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakejoin.orchestration.cli import options
from lakejoin.orchestration.cli.exit_codes import FAILED
from lakejoin.orchestration.cli.options import Config
from lakejoin.orchestration.cli.output_file import output_file
from lakejoin.orchestration.cli.terminal import say

if TYPE_CHECKING:
    from lakejoin.orchestration.config import Pipeline
    from lakejoin.orchestration.verification.certificate import Certificate, Replay


def certify(
    config: Config,
    *,
    into: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the certificate to this file.", dir_okay=False)
    ] = None,
    check: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Hold the lake against this certificate.",
            exists=True,
            dir_okay=False,
            readable=True,
        ),
    ] = None,
    replay: Annotated[
        str | None,
        typer.Option(
            metavar="CUT",
            help="Also make everything once more in a lake that is thrown away, by batches that are cut otherwise: "
            "`all` in one, `date` one a day, or a number of records.",
        ),
    ] = None,
) -> None:
    """Certify what a lake holds: a hash of each table that goes by its rows alone.

    With hashes of the input and of the configuration, in a file that can be read, compared and signed. Starts no Spark
    unless something is made once more.
    """  # fmt: skip
    from lakejoin.orchestration.errors import WrongUsage
    from lakejoin.orchestration.verification.certificate import certified, goes_by_arrival, read_certificate

    if (into is None) == (check is None) or (check is not None and replay is not None):
        raise WrongUsage("give --into FILE, with or without --replay, or --check FILE")
    pipeline = options.load_pipeline(config)
    if check is not None:
        earlier = read_certificate(check)
        _hold(certified(pipeline), earlier)
        return
    assert into is not None
    with output_file("--into", into) as file:
        made = _made(pipeline, replay)
        file.write(made.text().encode())
    say(f"{into}: what {pipeline.lake} holds after batch {made.batch}")
    if made.replay is not None and not all(
        goes_by_arrival(pipeline, name) for name in made.replay.differing(made)
    ):
        raise typer.Exit(FAILED)


def _made(pipeline: "Pipeline", replay: str | None) -> "Certificate":
    """Certify, and say what came."""
    from lakejoin.orchestration.verification.certificate import certified

    made = certified(pipeline)
    for name, held in made.content.items():
        left_out = f", without {', '.join(held.left_out)}" if held.left_out else ""
        say(f"{name}: {held.rows:,} rows, {held.sha256[:16]}…{left_out}")
    if replay is None:
        return made
    return made.model_copy(update={"replay": _replayed(pipeline, made, replay)})


def _hold(made: "Certificate", earlier: "Certificate") -> None:
    """Say what is not as an earlier certificate has it; only what tables hold decides the exit code."""
    from lakejoin.orchestration.verification.certificate import differences

    found = differences(earlier, made)
    for name in made.content:
        if name not in found.content:
            say(f"{name}: as certified")
    for name, said in found.content.items():
        say(f"{name}: {said}")
    for what, names in (("configuration", found.configuration), ("input", found.inputs)):
        if names:
            say(f"the {what} is another one: {', '.join(names)}")
    if found.content:
        raise typer.Exit(FAILED)


def _replayed(pipeline: "Pipeline", made: "Certificate", cut: str) -> "Replay":
    from lakejoin.orchestration.cli.replay import replayed
    from lakejoin.orchestration.verification.certificate import goes_by_arrival

    found = replayed(pipeline, made, cut)
    differing = found.differing(made)
    batches = "1 batch" if found.batches == 1 else f"{found.batches:,} batches"
    say(f"made once more in {batches}: {'other' if differing else 'the same'} content")
    for name, said in differing.items():
        first = found.first_differences.get(name)
        why = ", as its records met what had come until then" if goes_by_arrival(pipeline, name) else ""
        say(f"{name}: {said}{f'; first {first}' if first else ''}{why}")
    return found
