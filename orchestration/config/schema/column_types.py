"""Reads the Spark SQL types of declared columns without a JVM.

Spark's own parser needs a running session; a file must be checked without one. The grammar is Spark's, without what a
Delta column of change data cannot be (intervals, variants, collations, NOT NULL, comments).
"""

import re
from collections.abc import Iterator
from typing import NoReturn

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from lakejoin.orchestration.config.problems import did_you_mean

NAMES = (
    "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(p,s)", "string", "binary", "boolean",
    "date", "timestamp", "timestamp_ntz", "array<…>", "map<…,…>", "struct<name: …>",
)  # fmt: skip
"""The types as the documentation and messages list them."""

_SIMPLE: dict[str, type[DataType]] = {
    "boolean": BooleanType,
    "tinyint": ByteType,
    "byte": ByteType,
    "smallint": ShortType,
    "short": ShortType,
    "int": IntegerType,
    "integer": IntegerType,
    "bigint": LongType,
    "long": LongType,
    "float": FloatType,
    "real": FloatType,
    "double": DoubleType,
    "string": StringType,
    "binary": BinaryType,
    "date": DateType,
    "timestamp": TimestampType,
    "timestamp_ltz": TimestampType,
    "timestamp_ntz": TimestampNTZType,
}
_DECIMAL = {"decimal", "dec", "numeric"}
_KNOWN = (*_SIMPLE, *_DECIMAL, "array", "map", "struct")
_OTHER_NAMES = {
    "bigserial": "bigint", "blob": "binary", "bool": "boolean", "bytea": "binary", "char": "string",
    "datetime": "timestamp", "float4": "float", "float8": "double", "int2": "smallint", "int4": "int",
    "int8": "bigint", "int16": "smallint", "int32": "int", "int64": "bigint", "json": "string",
    "number": "decimal", "serial": "int", "str": "string", "text": "string", "timestamptz": "timestamp",
    "uuid": "string", "varchar": "string",
}  # fmt: skip
"""What other systems call our types."""
_TOKEN = re.compile(r"\s*(?:(?P<word>\w+)|`(?P<quoted>(?:[^`]|``)+)`|(?P<sign>[<>(),:])|(?P<other>\S))")
_NESTED = 16
_DIGITS = 38


def parse_type(text: str) -> DataType:
    """The type that a declaration such as `decimal(12,2)` names. Raises `ValueError` with what is wrong."""
    parser = _Parser(text)
    dtype = parser.type_(0)
    parser.end()
    return dtype


def type_text(dtype: DataType) -> str:
    """The type as one declares it: `decimal(12,2)`."""
    return dtype.simpleString()


def field_names(dtype: DataType) -> Iterator[str]:
    """The names of all fields within a type, however deep."""
    match dtype:
        case ArrayType():
            yield from field_names(dtype.elementType)
        case MapType():
            yield from field_names(dtype.keyType)
            yield from field_names(dtype.valueType)
        case StructType():
            for field in dtype:
                yield field.name
                yield from field_names(field.dataType)


def may_be_key(dtype: DataType) -> bool:
    """Whether values of the type identify a row.

    Binary fractions are equal or not by accident of rounding, and nested values have no agreed order or
    equality.
    """
    return not isinstance(dtype, FloatType | DoubleType | ArrayType | MapType | StructType)


def may_be_sequence(dtype: DataType) -> bool:
    """Whether values of the type say which of two changes came later."""
    return not isinstance(dtype, BooleanType | BinaryType | ArrayType | MapType | StructType)


class _Parser:
    """Recursive descent over the words, names and signs of one type."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = [
            (match.lastgroup or "", match[match.lastgroup or 0]) for match in _TOKEN.finditer(text)
        ]
        self._next = 0

    def type_(self, depth: int) -> DataType:
        if depth > _NESTED:
            raise ValueError(f"nested deeper than {_NESTED} levels")
        name = self._take("word", "a type").lower()
        if name in _SIMPLE:
            return _SIMPLE[name]()
        if name in _DECIMAL:
            return self._decimal()
        match name:
            case "array":
                self._sign("<")
                element = self.type_(depth + 1)
                self._sign(">")
                return ArrayType(element)
            case "map":
                return self._map(depth)
            case "struct":
                return self._struct(depth)
        raise ValueError(_unknown(name))

    def end(self) -> None:
        if self._next < len(self._tokens):
            self._expected("the end of the type")

    def _decimal(self) -> DecimalType:
        precision, scale = 10, 0
        if self._accept("("):
            precision = int(self._take("word", "a number of digits", number=True))
            scale = int(self._take("word", "a number of digits", number=True)) if self._accept(",") else 0
            self._sign(")")
        if not 1 <= precision <= _DIGITS or scale > precision:
            wanted = f"1 to {_DIGITS} digits, no more of them after the point"
            raise ValueError(f"decimal({precision},{scale}) does not exist; allowed: {wanted}")
        return DecimalType(precision, scale)

    def _map(self, depth: int) -> MapType:
        self._sign("<")
        key = self.type_(depth + 1)
        self._sign(",")
        value = self.type_(depth + 1)
        self._sign(">")
        if "map<" in key.simpleString():
            raise ValueError("the key of a map may not hold a map")
        return MapType(key, value)

    def _struct(self, depth: int) -> StructType:
        self._sign("<")
        fields: list[StructField] = []
        while not fields or self._accept(","):
            name = self._take_name()
            self._accept(":")
            fields.append(StructField(name, self.type_(depth + 1)))
            if name.lower() in {field.name.lower() for field in fields[:-1]}:
                raise ValueError(f"the field {name!r} stands twice in a struct (capitals make no difference)")
        self._sign(">")
        return StructType(fields)

    def _take_name(self) -> str:
        kind, token = self._peek()
        if kind == "quoted":
            self._next += 1
            return token.replace("``", "`")
        return self._take("word", "the name of a field")

    def _take(self, wanted: str, what: str, *, number: bool = False) -> str:
        kind, token = self._peek()
        if kind != wanted or (number and not re.fullmatch(r"[0-9]{1,3}", token)):
            self._expected(what)
        self._next += 1
        return token

    def _accept(self, sign: str) -> bool:
        if self._peek() != ("sign", sign):
            return False
        self._next += 1
        return True

    def _sign(self, sign: str) -> None:
        if not self._accept(sign):
            self._expected(f"'{sign}'")

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._next] if self._next < len(self._tokens) else ("", "")

    def _expected(self, what: str) -> NoReturn:
        token = self._peek()[1]
        got = repr(token) if token else "its end; a type with a comma in it needs quotes"
        raise ValueError(f"expected {what} in the type {self._text!r}, found {got}")


def _unknown(name: str) -> str:
    other = _OTHER_NAMES.get(name)
    hint = f"; did you mean '{other}'?" if other else did_you_mean(name, _KNOWN)
    return f"unknown type '{name}'{hint} (allowed: {', '.join(NAMES)})"
