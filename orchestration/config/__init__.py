"""The configuration file: `load` reads, checks and types it; every mistake in it is reported at once."""

from orchestration.config.loading import load, load_text
from orchestration.config.model import Join, Source, Spark, Table
from orchestration.config.pipeline import Pipeline, UncheckedExpression
from orchestration.config.problems import ConfigurationError, Problem

__all__ = [
    "ConfigurationError",
    "Join",
    "Pipeline",
    "Problem",
    "Source",
    "Spark",
    "Table",
    "UncheckedExpression",
    "load",
    "load_text",
]
