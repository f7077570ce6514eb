"""Reads the sizes of a configuration file: a number and a unit."""

import re
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

SIZE_PATTERN = r"^([0-9]{1,9}(?:\.[0-9]{1,9})?) *(bytes|kB|MB|GB|TB)$"
MEGABYTE, GIGABYTE, TERABYTE = 10**6, 10**9, 10**12

_BYTES = {"bytes": 1, "kB": 10**3, "MB": MEGABYTE, "GB": GIGABYTE, "TB": TERABYTE}


def parse_size(value: Any) -> int:
    """Bytes of a size such as `100 MB`. Raises `ValueError` with what is allowed."""
    matched = re.fullmatch(SIZE_PATTERN, value) if isinstance(value, str) else None
    if matched is None:
        raise ValueError("expected a number and a unit, as '100 MB' (units: bytes, kB, MB, GB, TB)")
    return int(Decimal(matched[1]) * _BYTES[matched[2]])


Size = Annotated[
    int, BeforeValidator(parse_size), WithJsonSchema({"type": "string", "pattern": SIZE_PATTERN})
]
