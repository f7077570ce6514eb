"""Loads the configuration file: `load` reads, checks and types it, and reports every mistake in it at once."""

from lakejoin.orchestration.config.loading import load, load_text, pipeline_of
from lakejoin.orchestration.config.pipeline import Pipeline
from lakejoin.orchestration.config.problems import ConfigurationError
from lakejoin.orchestration.config.schema.joins import AnyJoin, Group, Join, Star, StreamJoin
from lakejoin.orchestration.config.schema.model import Input

__all__ = [
    "AnyJoin", "ConfigurationError", "Group", "Input", "Join", "Pipeline", "Star", "StreamJoin", "load",
    "load_text", "pipeline_of",
]  # fmt: skip
