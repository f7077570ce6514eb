"""Runs `lakejoin dev`: Dagster's web interface over a pipeline, on this machine only."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakejoin.orchestration.cli import options
from lakejoin.orchestration.cli.terminal import say

if TYPE_CHECKING:
    from lakejoin.orchestration.config import Pipeline

HOST = "127.0.0.1"
"""The loopback address: the interface has no password."""
PORT = 3000
"""Where it listens by default."""
SETTINGS = """\
# Made by Lakejoin; change it as you like, it is not written again.
telemetry:
  enabled: false
# no invitation to a newsletter over the first page
nux:
  enabled: false
concurrency:
  pools:
    # A pipeline is a pool: its runs wait for one another.
    granularity: run
    default_limit: 1
"""


def dev(
    config: Annotated[
        Path | None,
        typer.Argument(
            help="The pipeline: a YAML file; by default the demo's.",
            metavar="CONFIG",
            exists=True,
            dir_okay=False,
        ),
    ] = None,
    *,
    home: Annotated[
        Path | None,
        typer.Option(
            help="Directory for Dagster's own records; by default _dagster below the lake.",
            metavar="DIR",
            file_okay=False,
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(min=1, max=65535, metavar="N", help="Port of the web interface.")
    ] = PORT,
) -> None:
    """Start Dagster's web interface.

    It listens on the loopback address, with the pipeline in it, until Ctrl-C ends it. Nothing is sent
    anywhere: Dagster's telemetry is off.
    """
    from lakejoin.orchestration.demo.example import DEMO, own_example

    pipeline = options.load_pipeline(config or own_example() / DEMO.name)
    _check_port(port)
    directory = prepare_home(home or default_home(pipeline))
    say(f"{pipeline.name}: http://{HOST}:{port} (Dagster's records are in {directory}; Ctrl-C ends it)")
    sys.stdout.flush()
    environment = {**os.environ, "LAKEJOIN_CONFIG": str(pipeline.path), "DAGSTER_HOME": str(directory)}
    # This process becomes Dagster's, which so gets every signal itself and leaves nothing running behind.
    os.execve(sys.executable, command(port), environment)  # noqa: S606 - no shell is wanted


def command(port: int) -> list[str]:
    """Return the command line that serves the project's workspace, or the installed package's definitions."""
    workspace = Path(__file__).resolve().parents[2] / "workspace.yaml"
    target = ["-w", str(workspace)] if workspace.exists() else ["-m", "lakejoin.orchestration.definitions"]
    # Without -W, it begins by saying that `dg dev` is newer; that one finds no workspace of ours.
    return [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "dagster",
        "dev",
        "--host",
        HOST,
        "--port",
        str(port),
        *target,
    ]


def default_home(pipeline: "Pipeline") -> Path:
    """Return where Dagster keeps its records: below the lake, or here for a lake at a URI."""
    from lakejoin.storage.lake.layout import Lake

    directory = Lake(pipeline.lake).local
    return directory / "_dagster" if directory is not None else Path(f".dagster_{pipeline.name}")


def _check_port(port: int) -> None:
    from lakejoin.orchestration.errors import WrongUsage
    from lakejoin.orchestration.health.machine import unusable_port

    if (reason := unusable_port(HOST, port)) is not None:
        raise WrongUsage(f"port {port} of {HOST} cannot be used ({reason}); name another by --port")


def prepare_home(home: Path) -> Path:
    """Make a directory that DAGSTER_HOME can name, with our settings unless it has some. Return it."""
    home.mkdir(parents=True, exist_ok=True)
    settings = home / "dagster.yaml"
    if not settings.exists():
        settings.write_text(SETTINGS, encoding="utf-8")
    return home.resolve()
