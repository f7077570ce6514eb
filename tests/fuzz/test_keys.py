"""Random keys and bytes through the codecs of keys: what is written is read, what was never written is refused."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from fuzz.mutations import SECONDS, seeds
from storage.stores.scan.order import beginning_with, successor
from transforms.foreign_key_join import combined_key
from transforms.foreign_key_join.combined_key_bytes import (
    CombinedKey,
    from_json,
    json_prefix,
    prefix_range,
    to_json,
)

pytestmark = pytest.mark.bad_input(20)
EXAMPLES = settings(max_examples=int(200 + 20 * SECONDS), deadline=None)
PAIRS = 2000
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
keys = st.dictionaries(texts, st.one_of(texts, st.integers(), st.booleans()), min_size=1, max_size=3)


@EXAMPLES
@given(st.binary(max_size=12))
def test_bytes_are_a_combined_key_or_refused(combined: bytes) -> None:
    """Taken apart and put together they are the same."""
    whole = len(combined) >= 4 and len(combined) - 4 >= int.from_bytes(combined[:4], "big")

    if whole:
        assert CombinedKey.from_bytes(combined).to_bytes() == combined
    else:
        with pytest.raises(ValueError, match="are no CombinedKey"):
            CombinedKey.from_bytes(combined)


@EXAMPLES
@given(st.binary(max_size=4), st.binary(max_size=4), st.binary(max_size=4))
def test_range_of_a_foreign_key_holds_its_keys_alone(foreign: bytes, other: bytes, primary: bytes) -> None:
    """Whatever bytes the keys have."""
    start, end = prefix_range(foreign)

    assert (start <= CombinedKey(other, primary).to_bytes() < end) is (foreign == other)


@EXAMPLES
@given(keys, keys, keys)
def test_json_of_keys_is_read_back_behind_the_prefix_of_one(
    foreign: dict[str, Any], other: dict[str, Any], primary: dict[str, Any]
) -> None:
    """No key begins with another's prefix; that true is no 1 is left to the types of the columns."""
    text = to_json(foreign, primary)

    assert from_json(text) == (foreign, primary)
    assert text.startswith(json_prefix(other)) is (json_prefix(foreign) == json_prefix(other))


@EXAMPLES
@given(st.one_of(st.tuples(texts, texts), st.tuples(st.binary(max_size=3), st.binary(max_size=3))))
def test_span_of_a_prefix_ends_behind_all_that_begin_with_it(pair: tuple[Any, Any]) -> None:
    """As stores order text and bytes: by code points, which are ordered as UTF-8 is."""
    prefix, rest = pair
    low, high = beginning_with((), prefix)

    if prefix and low is not None and (end := successor(prefix)) is not None:
        assert low.place[0] <= prefix + rest < end
        assert high is not None
        assert high.place == (end,)


@pytest.mark.spark
def test_spark_writes_and_reads_combined_keys_as_python_does(spark: SparkSession) -> None:
    """Of random bytes both make the same keys, and take the same apart or not."""
    for seed in seeds():
        chance = random.Random(seed)
        rows = [
            tuple(chance.randbytes(chance.choice((0, 1, 2, 5, 300))) for _ in range(2)) for _ in range(PAIRS)
        ]
        wild = [
            chance.choice((b"\0\0\0", b"\0\0", b"\xff")) + chance.randbytes(chance.randrange(9)) for _ in rows
        ]
        frame = spark.createDataFrame(
            [(*map(bytearray, pair), bytearray(any_)) for pair, any_ in zip(rows, wild, strict=True)],
            "foreign binary, primary binary, wild binary",
        )
        found = frame.select(
            combined_key.encode(F.col("foreign"), F.col("primary")),
            combined_key.foreign_key_of(F.col("wild")),
            combined_key.primary_key_of(F.col("wild")),
        ).collect()

        for pair, any_, row in zip(rows, wild, found, strict=True):
            assert row[0] == CombinedKey(*pair).to_bytes(), f"seed {seed}: {pair}"
            assert _plain(row[1:]) == _apart(any_), f"seed {seed}: {any_!r}"


def _apart(combined: bytes) -> tuple[bytes | None, bytes | None]:
    try:
        return tuple(CombinedKey.from_bytes(combined))  # type: ignore[return-value]
    except ValueError:
        return None, None


def _plain(values: Any) -> tuple[bytes | None, ...]:
    return tuple(None if value is None else bytes(value) for value in values)
