"""The configuration file: `load` reads, checks and types it; every mistake in it is reported at once."""

from orchestration.config.loading import load, load_text
from orchestration.config.model import Input, Join, Spark, Table
from orchestration.config.pipeline import Pipeline, UncheckedExpression
from orchestration.config.problems import ConfigurationError, Problem
from orchestration.config.source_model import Source
from orchestration.config.stream_model import Stream, StreamJoin

__all__ = [
    "ConfigurationError",
    "Input",
    "Join",
    "Pipeline",
    "Problem",
    "Source",
    "Spark",
    "Stream",
    "StreamJoin",
    "Table",
    "UncheckedExpression",
    "load",
    "load_text",
]
