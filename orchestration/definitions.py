"""Gives Dagster the definitions of the pipeline that LAKEJOIN_CONFIG names, by default the demo's."""

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from lakejoin.orchestration.config import load
from lakejoin.orchestration.defs.code_location import pipeline_definitions
from lakejoin.orchestration.demo.example import DEMO


def configuration_file(environment: Mapping[str, str]) -> Path:
    """The configuration file that Dagster is to load."""
    return Path(environment.get("LAKEJOIN_CONFIG") or DEMO)


defs = pipeline_definitions(load(configuration_file(os.environ)), datetime.now(UTC))
