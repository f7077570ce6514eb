r"""Encodes the CombinedKey without Spark, as `transforms.foreign_key_join.combined_key` does, but one key at a time.

>>> CombinedKey(b"N1", b"101").to_bytes()
b'\x00\x00\x00\x02N1101'
>>> start, end = prefix_range(b"N1")
>>> start <= CombinedKey(b"N1", b"101").to_bytes() < end <= CombinedKey(b"N10", b"1").to_bytes()
True
"""

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

LENGTH_BYTES = 4
JSON_START, JSON_BETWEEN, JSON_END = '{"foreign_key":', ',"primary_key":', "}"
_ESCAPES = re.compile(r"(\\\\)|\\u(00[01][a-f])")


class CombinedKey(NamedTuple):
    """Foreign key and primary key, each in bytes."""

    foreign_key: bytes
    primary_key: bytes

    def to_bytes(self) -> bytes:
        """`{4-byte length}{foreign key}{primary key}`, which are ordered as unsigned bytes."""
        return prefix(self.foreign_key) + self.primary_key

    @classmethod
    def from_bytes(cls, combined: bytes) -> "CombinedKey":
        """Take a CombinedKey apart. Raises `ValueError` for bytes that are none."""
        end = LENGTH_BYTES + int.from_bytes(combined[:LENGTH_BYTES], "big")
        if len(combined) < max(end, LENGTH_BYTES):
            raise ValueError(
                f"{combined[:20]!r}: {len(combined)} bytes are no CombinedKey; expected four with the length of the "
                "foreign key, that key, and the primary key"
            )
        return cls(combined[LENGTH_BYTES:end], combined[end:])


def prefix(foreign_key: bytes) -> bytes:
    """The bytes that the CombinedKeys of a foreign key begin with, and no others."""
    return len(foreign_key).to_bytes(LENGTH_BYTES, "big") + foreign_key


def prefix_range(foreign_key: bytes) -> tuple[bytes, bytes]:
    """The CombinedKeys of a foreign key as a range: the first bytes of it, and the first behind it."""
    start = prefix(foreign_key)
    # the first byte of a length is never 255, so there is always one that can be raised
    kept = start.rstrip(b"\xff")
    return start, kept[:-1] + bytes([kept[-1] + 1])


def to_json(foreign_key: Mapping[str, Any], primary_key: Mapping[str, Any]) -> str:
    """The CombinedKey as JSON, of keys by column: texts, whole numbers, booleans."""
    return json_prefix(foreign_key) + _json(primary_key) + JSON_END


def json_prefix(foreign_key: Mapping[str, Any]) -> str:
    """The text that the CombinedKeys of a foreign key begin with, and no others."""
    return JSON_START + _json(foreign_key) + JSON_BETWEEN


def from_json(combined: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Foreign key and primary key of a CombinedKey as JSON."""
    keys = json.loads(combined)
    return keys["foreign_key"], keys["primary_key"]


def _json(key: Mapping[str, Any]) -> str:
    """As Spark writes it: nothing escaped that need not be, and control characters in capitals."""
    text = json.dumps(key, separators=(",", ":"), ensure_ascii=False)
    return _ESCAPES.sub(lambda found: found[1] or "\\u" + found[2].upper(), text)
