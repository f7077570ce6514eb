"""Runs `lakejoin metrics`: writes the figures of a pipeline as Prometheus reads them, without Spark."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from lakejoin.orchestration.cli import options
from lakejoin.orchestration.cli.options import Config
from lakejoin.orchestration.cli.output_file import output_file
from lakejoin.orchestration.cli.terminal import say_data


def metrics(
    config: Config,
    into: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            dir_okay=False,
            help="Write them into a file, such as *.prom for node_exporter, whole or not at all.",
        ),
    ] = None,
) -> None:
    """Print the figures of the pipeline as metrics in Prometheus' text format.

    Counts by reason, rows, seconds by stage, quarantine, what waits and for how long, and whether figures are as the
    file expects.
    """
    from prometheus_client import generate_latest

    from lakejoin.orchestration.show.metrics import registry
    from lakejoin.orchestration.show.status import lake_status

    pipeline, now = options.load_pipeline(config), datetime.now(UTC)
    found = registry(pipeline, lake_status(pipeline, now), now)
    if into is not None:
        with output_file("--into", into) as file:
            file.write(generate_latest(found))
        return
    say_data(generate_latest(found).decode().splitlines(keepends=True))
