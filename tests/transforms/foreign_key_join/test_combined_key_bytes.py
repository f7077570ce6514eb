"""The CombinedKey without Spark: order, ranges by foreign key, and back again."""

import doctest

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from transforms.foreign_key_join import combined_key_bytes
from transforms.foreign_key_join.combined_key_bytes import (
    CombinedKey,
    from_json,
    json_prefix,
    prefix,
    prefix_range,
    to_json,
)

_BYTES = st.binary(max_size=5) | st.text(max_size=4).map(lambda text: text.encode("utf-8", "surrogatepass"))
_NAMES = st.dictionaries(st.sampled_from(["a", "b"]), st.text(max_size=4) | st.integers() | st.booleans())


def test_examples_of_the_documentation_hold() -> None:
    """Those of the module."""
    assert doctest.testmod(combined_key_bytes).failed == 0


@pytest.mark.bad_input(20)
@given(foreign_key=_BYTES, primary_key=_BYTES)
@example(foreign_key=b"", primary_key=b"")
def test_bytes_hold_both_keys(foreign_key: bytes, primary_key: bytes) -> None:
    """Whatever they are, empty ones as well."""
    combined = CombinedKey(foreign_key, primary_key).to_bytes()

    assert combined == len(foreign_key).to_bytes(4, "big") + foreign_key + primary_key
    assert CombinedKey.from_bytes(combined) == (foreign_key, primary_key)


@pytest.mark.bad_input(20)
@given(one=_BYTES, other=_BYTES, primary_key=_BYTES)
@example(one=b"1", other=b"10", primary_key=b"0")
@example(one=b"", other=b"\x00", primary_key=b"")
@example(one=b"\xff", other=b"\xff\xff", primary_key=b"\xff")
def test_range_holds_the_keys_of_one_foreign_key_only(one: bytes, other: bytes, primary_key: bytes) -> None:
    """So a scan by prefix finds all subscribers of a key, and none of a longer one."""
    combined, (start, end) = CombinedKey(other, primary_key).to_bytes(), prefix_range(one)

    assert (start <= combined < end) == (one == other) == combined.startswith(prefix(one))


@pytest.mark.parametrize("torn", [b"", b"\x00\x00\x00", b"\x00\x00\x00\x02a"])
def test_bytes_that_are_no_key_are_refused(torn: bytes) -> None:
    """The length says what must follow."""
    with pytest.raises(ValueError, match="bytes are no CombinedKey"):
        CombinedKey.from_bytes(torn)


@given(foreign_key=_NAMES, other=_NAMES, primary_key=_NAMES)
@example(foreign_key={"a": "1"}, other={"a": '1"},"primary_key":'}, primary_key={})
def test_json_holds_both_keys_behind_a_prefix_of_one(
    foreign_key: dict[str, str], other: dict[str, str], primary_key: dict[str, str]
) -> None:
    """Text that looks like the end of a key is escaped, so it ends none."""
    combined = to_json(foreign_key, primary_key)

    assert from_json(combined) == (foreign_key, primary_key)
    assert combined.startswith(json_prefix(foreign_key))
    same = list(map(repr, foreign_key.items())) == list(map(repr, other.items()))
    assert combined.startswith(json_prefix(other)) == same


def test_control_characters_are_written_as_spark_does() -> None:
    """In capitals; text that only looks like such an escape stays as it is."""
    assert to_json({"a": "\x1f\n"}, {"b": "\\u001f"}) == (
        '{"foreign_key":{"a":"\\u001F\\n"},"primary_key":{"b":"\\\\u001f"}}'
    )
