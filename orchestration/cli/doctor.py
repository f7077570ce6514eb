"""Runs `lakejoin doctor`: says what on this machine would keep a run from its work."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakejoin.orchestration.cli import options
from lakejoin.orchestration.cli.dev import HOST, PORT
from lakejoin.orchestration.cli.exit_codes import FAILED
from lakejoin.orchestration.cli.terminal import say

if TYPE_CHECKING:
    from lakejoin.orchestration.config import Pipeline
    from lakejoin.orchestration.config.pipeline import SessionArguments
    from lakejoin.orchestration.health.finding import Finding


def doctor(
    config: Annotated[
        Path | None,
        typer.Argument(
            help="A pipeline: its lake, memory, options of Java and JARs are looked at.", metavar="[CONFIG]",
            exists=True, dir_okay=False, readable=True,
        ),
    ] = None,
) -> None:  # fmt: skip
    """Say what on this machine would keep a run from its work.

    Java, its collector, memory, disk, packages, JARs, and what is kept between runs: a line each, with what to do. No
    Spark is started and nothing is fetched. The exit code is 1 if anything is wrong.
    """
    found = list(_findings(None if config is None else options.load_pipeline(config)))
    for finding in found:
        say(f"{finding.verdict:7}  {finding.about}: {finding.text}")
    if any(finding.verdict == "wrong" for finding in found):
        raise typer.Exit(FAILED)


def _findings(pipeline: "Pipeline | None") -> Iterator["Finding"]:
    from lakejoin.orchestration.health import java, machine, packages
    from lakejoin.orchestration.health.finding import Finding
    from lakejoin.storage.lake.layout import Lake

    session: SessionArguments = pipeline.session if pipeline else _DEFAULT
    lake = Lake(pipeline.lake if pipeline else os.fspath(Path.cwd())).local
    yield packages.versions(packages.tested())
    yield from java.of_java(session)
    yield java.engines()
    yield machine.memory(java.driver_memory(session), machine.total_memory())
    if lake is None:
        yield Finding("disk", "ok", "not looked at, for the lake is at a URI")
    else:
        yield machine.disk(lake)
    yield machine.port(HOST, PORT)


_DEFAULT: "SessionArguments" = {"master": "local[*]", "conf": {}, "places": (), "formats": ()}
"""What a session without a pipeline is started with."""
