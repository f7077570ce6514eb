"""Runs `lakejoin engine`: shows, ends and reads the JVMs that stay between runs."""

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import typer

from lakejoin.orchestration.cli.terminal import Row, print_table, say

if TYPE_CHECKING:
    from pathlib import Path

_MIB = 1024 * 1024
_LINES = 200
"""Lines of a log that are shown."""

engine = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@engine.callback()
def describe() -> None:
    """Show or end the JVMs that stay between runs, or read what they logged.

    A run leaves its JVM to the next one, which then starts in a second. It ends itself when it is idle: `engine` in the
    configuration says after how long, and whether there is one.
    """


@engine.command()
def status() -> None:
    """Show the engines of this user: what each does, its memory, when it ends."""
    from lakejoin.storage.spark.engine.sockets import answers

    rows: list[Row] = [_row(key, answer) for key, answer in answers(_folder(), "status")]
    if not rows:
        say("No engine runs.")
        return
    print_table("Engines", ["engine", "process", "does", "runs", "MiB", "since (UTC)"], rows)


@engine.command()
def stop() -> None:
    """End the engines of this user: an idle one now, another one when its run has ended."""
    from lakejoin.storage.spark.engine.sockets import answers

    stopped = list(answers(_folder(), "stop"))
    for key, answer in stopped:
        say(f"{key} ends " + (f"with the run of process {client}" if (client := answer["busy"]) else "now"))
    if not stopped:
        say("No engine runs.")


@engine.command()
def logs() -> None:
    """Show the last lines of what the engines of this user logged, those that have ended included."""
    from lakejoin.storage.spark.engine.sockets import log_paths

    written = [path for path in log_paths(_folder()) if path.stat().st_size]
    for path in written:
        say(f"{path}:")
        for line in path.read_text(errors="replace").splitlines()[-_LINES:]:
            say(line)
    if not written:
        say("Nothing was logged.")


def _folder() -> "Path":
    from lakejoin.storage.spark.engine.sockets import engine_folder
    from lakejoin.storage.spark.jars import cache_directory

    return engine_folder(cache_directory(os.environ))


def _row(key: str, answer: dict[str, Any]) -> Row:
    if answer["client"]:
        does = f"a run of process {answer['client']}" + ", then ends" * answer["stopping"]
    else:
        does = f"waits, ends in {answer['ends_in'] / 60:.0f} minutes"
    since = f"{datetime.fromtimestamp(answer['since'], UTC):%Y-%m-%d %H:%M}"
    # a process is a name, not a number of things
    return key, str(answer["jvm"]), does, answer["runs"], answer["memory"] / _MIB, since
