"""Loads the configuration and starts the Spark session for the commands."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from orchestration.config import Pipeline

Config = Annotated[
    Path,
    typer.Argument(
        help="The pipeline: a YAML file.", metavar="CONFIG", exists=True, dir_okay=False, readable=True
    ),
]


def load_pipeline(config: Path) -> "Pipeline":
    """Read the configuration. Raises `ConfigurationError` with every mistake in it."""
    from orchestration.config import load

    return load(config)


def open_session(pipeline: "Pipeline", *, resident: bool | None = None) -> "SparkSession":
    """Return the Spark session that a pipeline asks for; no command gets one in another way.

    `resident`: whether its JVM stays for later runs, where the user says otherwise than the configuration.
    """
    from storage.spark.session import start_session

    return start_session(**pipeline.session, idle=pipeline.engine.stays(resident))
