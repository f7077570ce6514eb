"""Loads the configuration file: `load` reads, checks and types it, and reports every mistake in it at once."""

from orchestration.config.loading import load, load_text
from orchestration.config.pipeline import Pipeline
from orchestration.config.problems import ConfigurationError
from orchestration.config.schema.joins import AnyJoin, Group, Join, Star, StreamJoin
from orchestration.config.schema.model import Input

__all__ = [
    "AnyJoin", "ConfigurationError", "Group", "Input", "Join", "Pipeline", "Star", "StreamJoin", "load",
    "load_text",
]  # fmt: skip
