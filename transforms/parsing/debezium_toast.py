"""Recognises what Debezium sends for a PostgreSQL value that is stored out of line (TOAST) and did not change.

Debezium knows only the type of such a value, so each type has a stand-in of its own (`UnchangedToastedPlaceholder` in
its PostgreSQL connector). A real value is taken for one only if it is equal to it, byte by byte.
"""

import base64
import hashlib
import json
import uuid
from collections.abc import Collection, Mapping
from functools import reduce
from operator import or_

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, NumericType, StringType

UNAVAILABLE_VALUE = "__debezium_unavailable_value"
"""Stands for text, and within what stands for other types."""
_BYTES = UNAVAILABLE_VALUE.encode()
_BASE64 = base64.b64encode(_BYTES).decode()
_HEX = _BYTES.hex()
# Java's `UUID.nameUUIDFromBytes`, which knows no namespace
_UUID = str(uuid.UUID(bytes=hashlib.md5(_BYTES, usedforsecurity=False).digest(), version=3))
_NUMBERS = json.dumps([*_BYTES], separators=(",", ":"))
_LIST, _UUIDS, _BINARIES = (f'["{text}"]' for text in (UNAVAILABLE_VALUE, _UUID, _BASE64))
_HSTORE = json.dumps({UNAVAILABLE_VALUE: UNAVAILABLE_VALUE}, separators=(",", ":"))
_FIRST_NUMBERS = r"\[\s*95\s*,\s*95\s*,\s*100\s*,"


def is_placeholder(text: Column, dtype: DataType) -> Column:
    """Whether the text of a value, as `transforms.parsing.json_lines` gives it, stands for one that was not sent."""
    return text.isin(*_forms(dtype))


def is_mentioned(line: Column, types: Collection[DataType]) -> Column:
    """Whether a line holds what stands for a value of one of these types anywhere, which almost none does."""
    forms = {form for dtype in types for form in _forms(dtype)}
    signs = [sign for sign in (_BASE64, _HEX, _UUID) if any(sign in form for form in forms)]
    found = [line.contains(sign) for sign in (UNAVAILABLE_VALUE, *signs)]
    if _NUMBERS in forms:
        found.append(line.contains("95") & line.rlike(_FIRST_NUMBERS))
    return reduce(or_, found)


def stood_for(line: Column, values: Mapping[str, tuple[Column, DataType]]) -> Column:
    """Names of the values, each a text and its type, that a stand-in was sent for; null for none, as almost always."""
    names = [F.when(is_placeholder(text, dtype), F.lit(name)) for name, (text, dtype) in values.items()]
    mentioned = is_mentioned(line, [dtype for _, dtype in values.values()])
    return F.when(mentioned, F.array_compact(F.array(F.lit(None).cast("string"), *names)))


def _forms(dtype: DataType) -> tuple[str, ...]:
    match dtype:
        case BinaryType():
            return UNAVAILABLE_VALUE, _BASE64, _HEX
        case ArrayType(elementType=NumericType()):
            return UNAVAILABLE_VALUE, _NUMBERS
        case ArrayType():
            return UNAVAILABLE_VALUE, _LIST, _UUIDS, _BINARIES
        case MapType():
            return UNAVAILABLE_VALUE, _HSTORE
        case StringType():
            return UNAVAILABLE_VALUE, _BASE64, _HEX, _HSTORE
        case _:
            return (UNAVAILABLE_VALUE,)
