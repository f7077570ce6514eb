"""Checks what only Spark can check of a configuration: the SQL expressions in it."""

from collections.abc import Callable
from functools import partial

from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DataType, StructType

from lakejoin.orchestration.config import ConfigurationError, Pipeline
from lakejoin.orchestration.config.checks.joins import type_mistake
from lakejoin.orchestration.config.problems import Problem
from lakejoin.orchestration.spark_errors import reason_of
from lakejoin.transforms.model.group_spec import GroupSpec
from lakejoin.transforms.model.result_spec import ResultSpec, Selected
from lakejoin.transforms.model.specs import JoinSpec


def check_expressions(pipeline: Pipeline, spark: SparkSession) -> None:
    """Have Spark analyse every expression of joins, tables and streams; no row is read.

    Raises `ConfigurationError` for those that it does not understand, that are of another type than they should be, or
    of which a part cannot be computed, whatever the row is.
    """
    problems = [
        problem
        for name in pipeline.joins
        for found in (_problems, _result_problems)
        for problem in found(pipeline, pipeline.spec_of_join(name), spark)
    ]
    for name, read in pipeline.inputs.items():
        if read.where is not None and read.condition is not None:
            rows, judged = _no_rows(spark, read.spec.columns), partial(_condition_mistake, read.where)
            if mistake := _mistake(rows, read.condition, read.where, judged):
                problems.append(pipeline.problem((pipeline.section_of(name), name, "where"), mistake))
    if problems:
        raise ConfigurationError(problems)


def _problems(pipeline: Pipeline, join: ResultSpec, spark: SparkSession) -> list[Problem]:
    left, found = None, []
    for part, path, texts in pipeline.foreign_keys(join.name):
        for index, text in enumerate(texts):
            if text in join.left_columns.names:
                continue
            left = left or _no_rows(spark, join.left_columns)
            judged = partial(_key_mistake, part, index, text)
            if mistake := _mistake(left, part.foreign_key[index], text, judged):
                found.append(pipeline.problem((*path, index), mistake))
    return found


def _result_problems(pipeline: Pipeline, join: ResultSpec, spark: SparkSession) -> list[Problem]:
    """What is wrong with what a join selects, and with its condition."""
    if isinstance(join, GroupSpec):
        return _group_problems(pipeline, join, spark)
    expressions = [entry for entry in join.select or () if entry.column is None]
    if not expressions and join.where is None:
        return []
    pair = _no_rows(spark, join.pair_columns)
    found = [
        pipeline.problem(("joins", join.name, "select"), f"{entry.name}: {mistake}")
        for entry in expressions
        if (mistake := _mistake(pair, entry.sql, entry.sql, partial(_value_mistake, entry)))
    ]
    if join.where is not None:
        text = pipeline.declared_joins[join.name].where or join.where
        if mistake := _mistake(pair, join.where, text, partial(_condition_mistake, text)):
            found.append(pipeline.problem(("joins", join.name, "where"), mistake))
    return found


def _group_problems(pipeline: Pipeline, group: GroupSpec, spark: SparkSession) -> list[Problem]:
    """What is wrong with the aggregates of groups, and with their condition."""
    rows, place, found = _no_rows(spark, group.left_columns), ("groups", group.name), []
    for entry in group.aggregates:
        for index, text in enumerate(entry.expressions):
            wanted = Selected(entry.name, entry.of, text) if index == 0 and entry.of is not None else None
            judged = partial(_value_mistake, wanted) if wanted else lambda _: None
            if mistake := _mistake(rows, text, text, judged):
                found.append(pipeline.problem((*place, "select", entry.name), mistake))
    if group.having is not None:
        judged = partial(_condition_mistake, group.having)
        if mistake := _mistake(_no_rows(spark, group.columns), group.having, group.having, judged):
            found.append(pipeline.problem((*place, "having"), mistake))
    return found


def _value_mistake(entry: Selected, dtype: DataType) -> str | None:
    if dtype == entry.dtype:
        return None
    return (
        f"{entry.sql!r} is {dtype.simpleString()} by Spark, and was taken for {entry.dtype.simpleString()}; write "
        f"cast({entry.sql} as {entry.dtype.simpleString()})"
    )


def _mistake(rows: DataFrame, sql: str, text: str, judged: Callable[[DataType], str | None]) -> str | None:
    """What is wrong with an expression over rows: that Spark refuses it, or what is `judged` of its type."""
    try:
        computed = rows.select(F.expr(sql))
        dtype = computed.schema[0].dataType
    except (AnalysisException, ParseException) as error:
        return f"{text!r} is refused by Spark: {reason_of(error)}"
    return judged(dtype) or _constant_mistake(computed, text)


def _constant_mistake(computed: DataFrame, text: str) -> str | None:
    """What is wrong with a part of an expression that is the same for all rows: Spark computes it before any."""
    try:
        computed._jdf.queryExecution().optimizedPlan()  # noqa: SLF001 - PySpark has no other way to ask
    except PySparkException as error:
        return f"{text!r} cannot be computed, whatever the row is: {reason_of(error)}"
    return None


def _no_rows(spark: SparkSession, columns: StructType) -> DataFrame:
    """Rows of which Spark does not know that there are none: of those it would compute nothing."""
    return spark.createDataFrame(spark.sparkContext.emptyRDD(), columns)


def _condition_mistake(text: str, dtype: DataType) -> str | None:
    if dtype == BooleanType():
        return None
    return f"{text!r} is {dtype.simpleString()}; expected a condition, which is true or false"


def _key_mistake(join: JoinSpec, index: int, text: str, dtype: DataType) -> str | None:
    key = join.right_key[index]
    if join.null_refers:
        return _value_mistake(Selected(key, join.right_columns[key].dataType, text), dtype)
    return type_mistake(text, text, dtype, f"{join.right}.{key}", join.right_columns[key].dataType)
