"""Holds the lists of functions against Spark's own: what may be called in an expression, and what is refused."""

import pytest
from pyspark.sql import SparkSession

from lakejoin.orchestration.config.schema.column_types import parse_type
from lakejoin.orchestration.config.schema.expressions import expression_type
from lakejoin.orchestration.config.schema.functions import (
    _REASONS,
    FUNCTIONS,
    NOT_CONSTANT,
    SIGNS,
    SYNTAX,
    refusal,
)

GRAMMAR = {"try_cast", "dec", "then", "else", "varchar", "is", "numeric"}
"""Words of Spark's grammar that are no functions to it."""
ELSEWHERE = {"ai_query", "http_request", "read_files"}
"""Functions that other makers' Sparks have."""


@pytest.mark.spark
def test_every_function_is_listed(spark: SparkSession) -> None:
    """A function that a new version of Spark brings is looked at before that version is used."""
    known = {row["function"] for row in spark.sql("SHOW FUNCTIONS").collect()}

    assert {name for name in known - FUNCTIONS - SYNTAX - SIGNS if refusal(name) is None} == set()
    assert (FUNCTIONS | SYNTAX | SIGNS | {name for names in _REASONS.values() for name in names}) - known == (
        GRAMMAR | ELSEWHERE
    )


@pytest.mark.spark
def test_no_function_that_may_be_called_is_nondeterministic_to_spark(spark: SparkSession) -> None:
    """Nor is any an aggregate, a function over windows, or one that makes rows, by what Spark says of each."""
    jvm = spark._jvm
    assert jvm is not None
    catalog = spark._jsparkSession.sessionState().catalog()
    identifier = jvm.org.apache.spark.sql.catalyst.FunctionIdentifier
    expressions = "org.apache.spark.sql.catalyst.expressions."
    loader, nondeterministic = jvm.java.lang.Class, f"{expressions}Nondeterministic"
    infos = {
        name: catalog.lookupFunctionInfo(identifier(name)) for name in (FUNCTIONS | NOT_CONSTANT) - GRAMMAR
    }
    lots = {
        name
        for name, info in infos.items()
        if loader.forName(nondeterministic).isAssignableFrom(loader.forName(info.getClassName()))
    }
    groups = {info.getGroup() for name, info in infos.items() if name in FUNCTIONS}

    assert {"rand", "input_file_name", "monotonically_increasing_id"} <= lots <= NOT_CONSTANT
    assert groups.isdisjoint(
        {"agg_funcs", "window_funcs", "generator_funcs", "table_funcs", "lambda_funcs", ""}
    )


def test_no_function_is_both_allowed_and_refused() -> None:
    """Each is on one list, and for one reason."""
    reasons = [name for names in _REASONS.values() for name in names]

    assert [name for name in FUNCTIONS | SYNTAX if refusal(name)] == []
    assert len(reasons) == len(set(reasons))


@pytest.mark.parametrize("name", sorted(name for names in _REASONS.values() for name in names))
def test_listed_function_is_refused(name: str) -> None:
    """However sqlglot reads a call of it."""
    with pytest.raises(ValueError, match=r"^(calls|holds|is not valid SQL)"):
        expression_type(f"{name}(text)", {"text": parse_type("string")})
