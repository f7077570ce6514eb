"""Gives Dagster the definitions of the pipeline that LAKEJOIN_CONFIG names, by default the demo's."""

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from dagster import Definitions, in_process_executor

from lakejoin.orchestration.config import load
from lakejoin.orchestration.defs.code_location import pipeline_definitions
from lakejoin.orchestration.defs.embedded_pipeline import EmbeddedPipeline
from lakejoin.orchestration.demo.example import DEMO


def configuration_file(environment: Mapping[str, str]) -> Path:
    """The configuration file that Dagster is to load."""
    return Path(environment.get("LAKEJOIN_CONFIG") or DEMO)


# With one process for each step, each would import all again; whoever embeds a pipeline chooses for himself.
defs = Definitions.merge(
    pipeline_definitions(EmbeddedPipeline(load(configuration_file(os.environ))), datetime.now(UTC)),
    Definitions(executor=in_process_executor),
)
