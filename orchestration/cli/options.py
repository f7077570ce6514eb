"""Loads the configuration and starts the Spark session for the commands."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lakejoin.orchestration.config import Pipeline

Config = Annotated[
    Path,
    typer.Argument(
        help="The pipeline: a YAML file.", metavar="CONFIG", exists=True, dir_okay=False, readable=True
    ),
]
JoinOfTables = Annotated[str, typer.Argument(metavar="JOIN", help="A join of tables.")]
Form = Annotated[
    Literal["table", "csv", "jsonl"],
    typer.Option("--format", help="For people, RFC 4180 with \\N for null, or JSON lines."),
]
AsOfBatch = Annotated[
    int | None, typer.Option(metavar="B", help="The table as batch B left it; by default the last one.")
]


def load_pipeline(config: Path) -> "Pipeline":
    """Read the configuration. Raises `ConfigurationError` with every mistake in it."""
    from lakejoin.orchestration.config import load

    return load(config)


def open_session(pipeline: "Pipeline", *, resident: bool | None = None) -> "SparkSession":
    """Return the Spark session that a pipeline asks for; no command gets one in another way.

    `resident`: whether its JVM stays for later runs, where the user says otherwise than the configuration.
    """
    from lakejoin.storage.spark.session import start_session

    return start_session(**pipeline.session, idle=pipeline.engine.stays(resident))
