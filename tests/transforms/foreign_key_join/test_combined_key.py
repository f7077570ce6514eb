"""The CombinedKey as columns: the same bytes and texts as without Spark, and in the same order."""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from transforms.foreign_key_join import combined_key_bytes
from transforms.foreign_key_join.combined_key import (
    decode_json,
    encode,
    encode_json,
    foreign_key_of,
    json_prefix,
    key_bytes,
    prefix,
    primary_key_of,
)
from transforms.foreign_key_join.combined_key_bytes import CombinedKey

pytestmark = pytest.mark.spark

TEXTS = ("", "1", "10", "1\x00", "Straße", "été", "\uffff", "\U00010000", 'a"},"b', "\\u001f", "\x1f\t/\x7f")
_KEY = StructType().add("code", "string")
_PAIR = StructType().add("region", "string").add("no", "integer")


@pytest.mark.bad_input(19)
@pytest.mark.bad_input(20)
def test_columns_make_the_bytes_and_the_json_of_one_key(spark: SparkSession) -> None:
    """Of texts of all kinds, each as foreign and as primary key; and they take them apart again."""
    keys = [(one, other) for one in TEXTS for other in TEXTS]
    frame = spark.createDataFrame([((one,), (other,)) for one, other in keys], StructType()
                                  .add("foreign_key", _KEY).add("primary_key", _KEY))  # fmt: skip
    foreign, primary = (key_bytes(F.col(name), _KEY) for name in ("foreign_key", "primary_key"))
    made = frame.select(
        encode(foreign, primary).alias("combined"),
        prefix(foreign).alias("prefix"),
        encode_json("foreign_key", "primary_key").alias("json"),
        json_prefix("foreign_key").alias("json_prefix"),
    )
    rows = made.withColumns(
        {
            "foreign": foreign_key_of(F.col("combined")).cast("string"),
            "primary": primary_key_of(F.col("combined")).cast("string"),
            "keys": decode_json(F.col("json"), _KEY, _KEY),
        }
    ).collect()

    assert [(row["foreign"], row["primary"]) for row in rows] == keys
    assert [(row["keys"]["foreign_key"][0], row["keys"]["primary_key"][0]) for row in rows] == keys
    for row, (one, other) in zip(rows, keys, strict=True):
        assert bytes(row["combined"]) == CombinedKey(one.encode(), other.encode()).to_bytes()
        assert bytes(row["prefix"]) == combined_key_bytes.prefix(one.encode())
        assert row["json"] == combined_key_bytes.to_json({"code": one}, {"code": other})
        assert row["json_prefix"] == combined_key_bytes.json_prefix({"code": one})
    in_order = [bytes(row["combined"]) for row in made.orderBy("combined").collect()]
    assert in_order == sorted(bytes(row["combined"]) for row in rows)


def test_key_of_several_columns_is_a_json_array_and_a_null_one_has_no_bytes(spark: SparkSession) -> None:
    """A part that is null makes the key null; an empty one is a value."""
    frame = spark.createDataFrame(
        [((("EU", 1)),), (("", 2),), ((None, 3),), (None,)], StructType().add("key", _PAIR)
    )
    found = frame.select(key_bytes(F.col("key"), _PAIR).cast("string").alias("key")).collect()
    assert [row["key"] for row in found] == ['["EU","1"]', '["","2"]', None, None]

    nothing = F.lit(None).cast("binary")
    row = (
        spark.range(1)
        .select(
            encode(nothing, F.lit(b"k")).alias("null"),
            key_bytes(F.struct(F.lit(b"\xff\x00").alias("b")), StructType().add("b", "binary")).alias(
                "binary"
            ),
            foreign_key_of(F.lit(b"\x00\x00\x00\x02a")).alias("torn"),
            primary_key_of(F.lit(b"\x00\x00")).alias("short"),
            primary_key_of(encode(F.lit(b"f"), F.lit(b""))).alias("empty"),
        )
        .first()
    )
    assert row is not None
    assert (row["null"], bytes(row["binary"]), row["torn"], row["short"]) == (None, b"\xff\x00", None, None)
    assert bytes(row["empty"]) == b""
