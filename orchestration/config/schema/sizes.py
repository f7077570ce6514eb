"""Reads sizes and shares of a configuration file: a number and a unit, a number of percent."""

import re
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

SIZE_PATTERN = r"^([0-9]{1,9}(?:\.[0-9]{1,9})?) *(bytes|kB|MB|GB|TB)$"
SHARE_PATTERN = r"^([0-9]{1,3}(?:\.[0-9]{1,9})?) *%$"
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


def parse_share(value: Any) -> float:
    """A share such as `10 %`, or as `0.1`. Raises `ValueError` with what is allowed."""
    if isinstance(value, str) and (matched := re.fullmatch(SHARE_PATTERN, value)):
        value = float(Decimal(matched[1]) / 100)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError("expected a share from 0 % to 100 %, as '10 %' or 0.1")
    return float(value)


Share = Annotated[
    float,
    BeforeValidator(parse_share),
    WithJsonSchema({"anyOf": [{"type": "string", "pattern": SHARE_PATTERN},
                              {"type": "number", "minimum": 0, "maximum": 1}]}),
]  # fmt: skip
"""A part of a whole."""
