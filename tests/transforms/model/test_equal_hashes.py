"""Rows with equal hashes are equal to every deterministic expression."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from lakejoin.transforms.model.expressions import attempt
from lakejoin.transforms.model.hashing import value_hash
from lakejoin.transforms.parsing.map_order import with_sorted_maps

pytestmark = pytest.mark.spark

VALUES: Mapping[str, Sequence[str]] = MappingProxyType({
    "double": ["0.0", "'-0.0'", "'NaN'", "-1 * double('NaN')", "'Infinity'", "1.5"],
    "float": ["0.0", "'-0.0'", "'NaN'", "-1 * float('NaN')", "'-Infinity'", "1.1"],
    "array<double>": ["array(0.0)", "array('-0.0')", "array('NaN')", "array()", "array(null)"],
    "struct<d:float,e:int>": ["struct(0.0, 1)", "struct('-0.0', 1)", "struct(null, null)"],
    "map<string,int>": ["map('a', 1, 'b', 2)", "map('b', 2, 'a', 1)", "map('a', 1)", "map()", "map('a', null)"],
    "map<int,map<string,double>>": [
        "map(1, map('x', 0, 'y', 1), 2, map())", "map(2, map(), 1, map('y', 1, 'x', 0))",
        "map(2, map(), 1, map('y', 1D, 'x', double('-0.0')))",
    ],
    "array<struct<m:map<date,string>>>": [
        "array(struct(map(date'2024-01-01', 'a', date'2023-01-01', 'b')))",
        "array(struct(map(date'2023-01-01', 'b', date'2024-01-01', 'a')))",
    ],
    "decimal(12,2)": ["1", "1.0", "1.10", "-0.00", "0"],
    "decimal(38,0)": ["99999999999999999999999999999999999999", "-99999999999999999999999999999999999999"],
    "array<decimal(12,2)>": ["array(1)", "array(1.0)", "array(-0.00)", "array(0)"],
    "string": ["''", "'a'", "'a '", "'A'", "'\\u00e9'", "'e\\u0301'", "string(unhex('ff'))", "string(unhex('fe'))"],
    "array<string>": [
        "array('a')", "array('a ')", "array('\\u00e9')", "array('e\\u0301')", "array(string(unhex('ff')))",
        "array(string(unhex('fe')))", "array('\\ufffd')", "array('')", "array(null)",
    ],
    "binary": ["x''", "x'00'", "x'0000'", "x'ff'"],
    "array<binary>": ["array(x'')", "array(x'00')", "array(x'0000')"],
    "timestamp": ["timestamp_micros(0)", "timestamp_micros(1)", "timestamp_micros(-62135596800000000)"],
    "timestamp_ntz": ["'1970-01-01'", "'1970-01-01 00:00:00.000001'", "'0001-01-01'", "'9999-12-31'"],
    "array<timestamp>": ["array(timestamp_micros(0))", "array(timestamp_micros(1))", "array(timestamp'0001-01-01')"],
    "array<timestamp_ntz>": ["array(timestamp_ntz'1970-01-01')", "array(timestamp_ntz'1970-01-01 00:00:00.000001')"],
    "date": ["'1970-01-01'", "'0001-01-01'", "'9999-12-31'"],
    "boolean": ["true", "false"],
    "bigint": ["0", "-0", "9223372036854775807"],
})  # fmt: skip
"""Of each type values that are alike in one way or another, as SQL."""
EXPRESSIONS = (
    "cast(x as string)", "to_json(struct(x))", "hash(x)", "xxhash64(x)", "signum(x)", "1 / x", "map_keys(x)[0]",
    "map_values(x)[0]", "to_json(map_keys(x[0].m))", "cast(x[0] as string)", "x[map_keys(x)[0]]", "size(x)", "hex(x)",
    "hex(x[0])",
    "length(x)", "cast(x as int)", "upper(x)", "x.d", "1 / x.d", "unix_micros(x)", "date_format(x, 'yyyy')",
)  # fmt: skip
"""Each is asked of the types that it can be computed for."""


def _values(spark: SparkSession, dtype: str) -> tuple[Column, list[str]]:
    """Every value as the door lets it in, and the expressions that the type allows."""
    one = spark.sql(f"select cast({VALUES[dtype][-1]} as {dtype}) x")
    parsed = one.schema["x"].dataType
    values = F.array(*[F.expr(f"cast({value} as {dtype})") for value in (*VALUES[dtype], "null")])
    allowed = [text for text in EXPRESSIONS if _computes(one, text)]
    return F.transform(values, lambda value: with_sorted_maps(value, parsed)), allowed


def _computes(rows: DataFrame, text: str) -> bool:
    try:
        rows.select(F.expr(text)).collect()
    except PySparkException:
        return False
    return True


@pytest.mark.parametrize("dtype", VALUES)
def test_values_with_one_hash_are_one_to_every_expression(spark: SparkSession, dtype: str) -> None:
    """A difference that an expression can see is one that the hash covers, or is taken away when a row is read."""
    values, allowed = _values(spark, dtype)
    assert len(allowed) > 2
    rows = spark.range(1).select(F.explode(values).alias("x"))
    seen = [F.to_json(F.struct(attempt(F.expr(f"cast({text} as string)")))) for text in allowed]
    columns = StructType([StructField("x", rows.schema["x"].dataType)])
    told = rows.select(value_hash(columns).alias("hash"), F.array(*seen).alias("seen"))
    split = told.groupBy("hash").agg(F.collect_set("seen").alias("seen")).where(F.size("seen") > 1)
    assert [row["seen"] for row in split.collect()] == []


def test_zeros_of_two_signs_have_two_hashes(spark: SparkSession) -> None:
    """And all other numbers the hash that they had."""
    rows = spark.sql("select explode(array(0.0D, double('-0.0'), 1.0D)) x")
    hashes = rows.select(value_hash(StructType([rows.schema["x"]])).alias("h")).distinct()
    assert hashes.count() == 3
