"""Runs `lakejoin warm`: makes the archive that the JVMs of later runs start from."""

import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakejoin.orchestration.cli import options
from lakejoin.orchestration.cli.terminal import say

if TYPE_CHECKING:
    from lakejoin.orchestration.config.pipeline import SessionArguments
    from lakejoin.storage.spark.archive import Archive

_MIB = 1024 * 1024
_LINES = 20
"""Lines of a training that failed that are shown."""


def warm(
    config: Annotated[
        Path | None,
        typer.Argument(
            help="A pipeline with options of Java, or sources that need more JARs: it gets an archive of its own.",
            metavar="[CONFIG]", exists=True, dir_okay=False, readable=True,
        ),
    ] = None,
) -> None:  # fmt: skip
    """Make an archive of what a JVM loads when it starts: the first run on this machine takes a fifth to a third less.

    A small pipeline in a temporary folder is worked off once, and what the JVM learned by it is kept in the cache of
    the user. Runs whose Java, JARs or options are others start as they did.
    """
    from lakejoin.storage.spark.archive import remove_orphans
    from lakejoin.storage.spark.engine.launch import JAVA_OPTIONS
    from lakejoin.storage.spark.start import prepare

    pipeline = None if config is None else options.load_pipeline(config)
    told: SessionArguments = pipeline.session if pipeline else {}
    start = prepare(**told)
    if not start.is_local:
        say(f"Nothing to make: the master {start.settings['spark.master']} is a cluster.")
        return
    archive = start.archive
    archive.path.parent.mkdir(parents=True, exist_ok=True)
    remove_orphans(start.cache)
    conf = dict(told.get("conf", {}))
    conf[JAVA_OPTIONS] = f"{conf.get(JAVA_OPTIONS, '')} {archive.option_to_make}".strip()
    say("A small pipeline is worked off, and what Java loads for it is written; that takes a minute or two.")
    started = time.monotonic()
    size = _train(archive, {**told, "conf": conf})
    say(
        f"{archive.path}: {size // _MIB} MiB in {time.monotonic() - started:.0f} s. Later JVMs start from it."
    )


def _train(archive: "Archive", session: "SessionArguments") -> int:
    """Let a process work off the pipeline and wait for its JVM; return the bytes of the archive."""
    from lakejoin.orchestration.runs.warm_up import write_pipeline
    from lakejoin.storage.errors import LakejoinError
    from lakejoin.storage.spark.own_process import own_process

    try:
        with tempfile.TemporaryDirectory(prefix="lakejoin-warm-") as folder:
            write_pipeline(Path(folder))
            # The JVM, and the one that it starts to write the archive, hold the pipe until they end.
            command, environment = own_process("lakejoin.orchestration.runs.warm_up", folder)
            done = subprocess.run(
                command, input=json.dumps(session), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                check=False, env=environment,
            )  # fmt: skip
        if done.returncode == 0 and archive.draft.exists():
            return archive.publish()
    finally:
        archive.discard()
    raise LakejoinError("No archive was made, for this happened:", *done.stdout.splitlines()[-_LINES:])
