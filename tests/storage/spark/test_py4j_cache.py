"""What PySpark asks the JVM for again and again."""

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import pytest
from py4j.java_gateway import GatewayClient
from pyspark.sql import Column, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType, LongType

from lakejoin.storage.spark import py4j_cache

pytestmark = pytest.mark.spark


def an_expression() -> Column:
    """A column with each kind of argument: names, plain values, other columns, lists, a type and a window."""
    several = F.struct(F.col("a"), F.lit(1).alias("one"), F.lit(None).cast(DecimalType(9, 2)).alias("none"))
    first = F.row_number().over(Window.partitionBy("a").orderBy(F.col("b").desc()))
    return F.when((first == 1) & F.col("a").isin(1, 2), several).otherwise(F.lit(None))


def test_an_expression_that_is_built_again_asks_the_jvm_for_nothing(spark: SparkSession) -> None:
    """Neither what `functions` is, nor for any column of it; only PySpark looks for the session before it casts."""
    an_expression()
    with messages() as sent:
        an_expression()
    to_forget = "m\n"
    asked = {command.split("\n")[2] for command in sent if not command.startswith(to_forget)}
    assert asked <= {"getActiveSession", "isDefined", "get", "applyModifiableSettings"}


def test_session_that_is_begun_again_keeps_its_answers_once(spark: SparkSession) -> None:
    """A process may start it more than once."""
    for _ in range(2):
        py4j_cache.remember_answers(spark)
        (row,) = spark.range(1).select(F.lit("1").cast(LongType()).alias("one")).collect()
        assert row.one == 1


def test_what_is_kept_gives_the_same_rows(spark: SparkSession) -> None:
    """Built twice and once without what is kept."""
    rows = spark.createDataFrame([(1, 2), (1, 3), (3, 1)], "a int, b int")
    found = [rows.select(an_expression().alias("found")).collect() for _ in range(2)]
    py4j_cache._answers.clear()
    found.append(rows.select(an_expression().alias("found")).collect())
    assert found[0] == found[1] == found[2]
    assert sum(row.found is not None for row in found[0]) == 1


def test_values_that_python_calls_equal_are_told_apart(spark: SparkSession) -> None:
    """True and 1, 1 and 1.0, zero and its negative, a number and its text."""
    values = [True, 1, 1.0, "1", Decimal("1.0"), Decimal("1.00"), 0.0, -0.0, False, 0]
    columns = [F.lit(value).alias(f"_{at}") for at, value in enumerate(values)]
    (row,) = spark.range(1).select(columns).collect()
    assert [(type(value), str(value)) for value in row] == [(type(value), str(value)) for value in values]


def test_functions_that_draw_a_seed_draw_it_each_time(spark: SparkSession) -> None:
    """Two columns of chance are two."""
    frame = spark.range(20).select(F.rand().alias("a"), F.rand().alias("b"))
    assert frame.where("a = b").count() == 0
    numbers = F.lit([*range(20)])
    (orders,) = spark.range(1).select(F.shuffle(numbers).alias("a"), F.shuffle(numbers).alias("b")).collect()
    assert orders.a != orders.b


def test_variables_of_nested_functions_stay_their_own(spark: SparkSession) -> None:
    """The inner of two functions of arrays sees its own element and the outer one's."""
    for _ in range(2):
        inner = F.transform("a", lambda x: F.transform("a", lambda y: x * 10 + y))
        (row,) = spark.sql("SELECT array(1, 2) AS a").select(inner.alias("found")).collect()
        assert row.found == [[11, 12], [21, 22]]


def test_fields_of_classes_are_read_each_time(spark: SparkSession) -> None:
    """They may be numbers and texts, and change; a singleton of Scala's is always the same."""
    jvm = spark._jvm
    assert jvm.java.lang.Long.MAX_VALUE == 2**63 - 1
    assert "MAX_VALUE" not in vars(jvm.java.lang.Long)
    nil = getattr(jvm.scala.collection.immutable, "Nil$")
    assert getattr(nil, "MODULE$") is getattr(nil, "MODULE$")


def test_frames_are_not_kept(spark: SparkSession) -> None:
    """A frame that is broadcast is another one each time, and is let go."""
    before = len(py4j_cache._answers)
    F.broadcast(spark.range(1))
    F.broadcast(spark.range(1))
    assert len(py4j_cache._answers) == before


def test_no_more_is_kept_than_said(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Literals that never come again do not add up."""
    monkeypatch.setattr(py4j_cache, "_KEPT", 50)
    py4j_cache._answers.clear()
    columns = [F.lit(f"number {number}") for number in range(200)]
    assert len(py4j_cache._answers) <= 50
    (row,) = spark.range(1).select(columns).collect()  # those that were let go are still good
    assert [*row] == [f"number {number}" for number in range(200)]


@contextmanager
def messages() -> Iterator[list[str]]:
    """The messages to the JVM meanwhile."""
    sent: list[str] = []
    send = GatewayClient.send_command

    def counted(client: Any, command: str, *rest: Any, **options: Any) -> Any:
        sent.append(command)
        return send(client, command, *rest, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GatewayClient, "send_command", counted)
        yield sent
