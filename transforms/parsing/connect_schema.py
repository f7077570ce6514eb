"""Reads values by the schema that Kafka Connect puts beside an event, and those that say themselves what they are.

Nothing is to be declared then: how a decimal is encoded, which unit a time has, whether text is base64. Objects that
say it themselves are numbers with a scale of their own, and values of MongoDB's extended JSON. (Kafka Connect's
`org.apache.kafka.connect.data`; Debezium's `io.debezium.time` and `io.debezium.data`; "MongoDB Extended JSON (v2)".)
"""

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DateType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from transforms.parsing.json_lines import texts
from transforms.parsing.options import ParseOptions, TimeUnit
from transforms.parsing.typed_values import WHOLE, instant, parse_text
from transforms.parsing.unscaled_numbers import unscaled_digits

_CONNECT, _TIME = "org.apache.kafka.connect.data.", "io.debezium.time."
_DECIMAL = f"{_CONNECT}Decimal"
_UNITS: dict[str, TimeUnit] = {
    f"{_CONNECT}Timestamp": "millis", f"{_TIME}Timestamp": "millis", f"{_TIME}MicroTimestamp": "micros",
    f"{_TIME}NanoTimestamp": "nanos",
}  # fmt: skip
_DATES = (f"{_CONNECT}Date", f"{_TIME}Date")
_CLOCKS = (f"{_CONNECT}Time", f"{_TIME}Time", f"{_TIME}MicroTime", f"{_TIME}NanoTime")
_TYPE = (
    StructType()
    .add("type", StringType())
    .add("name", StringType())
    .add("parameters", StructType().add("scale", StringType()))
)
_COLUMN = StructType([StructField("field", StringType()), *_TYPE, StructField("items", _TYPE)])
_ROW = StructType().add("field", StringType()).add("fields", ArrayType(_COLUMN))
_NUMBERS = ("$numberLong", "$numberInt", "$numberDecimal", "$numberDouble")
_TEXTS = ("$oid", "$uuid", "$symbol")
_DESCRIBED = r'\{\s*+\\?"(?:\$|scale\\?")'
"""Begins such an object, in a string as well."""
SCHEMA = StructType().add("fields", ArrayType(_ROW))
"""What is read of the schema of an event."""
ROW_SCHEMA = StructType().add("fields", ArrayType(_COLUMN))
"""What is read of the schema of a row that has no event around it."""


def columns_of(schema: Column) -> Column:
    """The columns of the row before or after an event, null where it says none."""
    rows = F.filter(schema["fields"], lambda row: row["field"].isin("after", "before"))
    return F.get(rows, F.lit(0))["fields"]


def read_by_schema(
    line: Column, columns: Column, values: Sequence[tuple[str, DataType, Column]], *, documents: bool
) -> Column:
    """Read texts of declared columns as their schema has them: a list of texts that can be read in no other way.

    `values`: what the source calls each, its declared type, its text. `documents`: the rows are MongoDB's. An element
    is null where the text is all that is said, and the whole list is null for a line of which nothing is said.
    """
    parts = [
        F.struct(F.lit(name).alias("name"), F.lit(_kind(dtype)).alias("kind"), text.alias("text"))
        for name, dtype, text in values
    ]

    def read(part: Column) -> Column:
        found = F.get(F.filter(columns, lambda column: column["field"] == part["name"]), F.lit(0))
        in_list = F.transform(
            F.from_json(part["text"], "array<string>"),
            lambda text: F.coalesce(_read(text, found["items"], part["kind"]), text),
        )
        by_schema = F.when(found["type"] == "array", F.to_json(in_list)).otherwise(
            _read(part["text"], found, part["kind"])
        )
        return F.when(
            part["text"].startswith("{"), _described(part["text"], part["kind"], documents)
        ).otherwise(by_schema)

    return F.when(columns.isNotNull() | line.rlike(_DESCRIBED), F.transform(F.array(*parts), read))


def parse_known(
    text: Column, dtype: DataType, options: ParseOptions, exact: Column | None, known: Column
) -> Column:
    """Read a text by its type. `known`: it was read by the schema, whatever else is said of its encoding."""
    value = parse_text(text, dtype, options, None if exact is None else F.when(~known, exact))
    if options.encoding in {None, "string", "base64"}:
        return value
    return F.when(known, parse_text(text, dtype, replace(options, encoding=None))).otherwise(value)


def _described(text: Column, kind: Column, documents: bool) -> Column:
    """What an object stands for that says itself what it is; null for any other."""
    said = F.from_json(text, texts(("scale", "value", *_NUMBERS, *_TEXTS, "$date", "$timestamp", "$binary")))
    date, binary = said["$date"], said["$binary"]
    millis = F.coalesce(F.from_json(date, texts(["$numberLong"]))["$numberLong"], date)
    seconds = F.from_json(said["$timestamp"], texts(["t"]))["t"].try_cast("bigint")
    moment = F.coalesce(
        _time(instant(F.when(millis.rlike(WHOLE), millis), "millis"), kind),
        _time(F.timestamp_seconds(seconds), kind),
        date,
    )
    number = F.coalesce(*[said[name] for name in _NUMBERS], unscaled_digits(said["value"], said["scale"]))
    in_base64 = F.coalesce(F.from_json(binary, texts(["base64"]))["base64"], binary)
    described = (
        F.when(kind == "number", number)
        .when(kind.isin("timestamp", "timestamp_ntz", "date"), moment)
        .when(kind == "binary", in_base64)
    )
    if not documents:
        return described
    return described.when(kind == "string", F.coalesce(*[said[name] for name in _TEXTS], number, moment))


def _kind(dtype: DataType) -> str:
    """What a declared type is to a schema; of a list, what its elements are."""
    match dtype:
        case NumericType():
            return "number"
        case StringType() | BinaryType() | DateType() | TimestampType() | TimestampNTZType():
            return dtype.typeName()
        case ArrayType():
            return _kind(dtype.elementType)
        case _:
            return "other"


def _read(text: Column, said: Column, kind: Column) -> Column:
    """A text by the schema of its column: type, name, parameters. What cannot be meant says so, and is read by none."""
    name, is_bytes = said["name"], said["type"] == "bytes"
    is_time = kind.isin("timestamp", "timestamp_ntz", "date")
    midnight = F.date_from_unix_date(text.try_cast("int")).cast("timestamp")
    return (
        F.when((name == _DECIMAL) & kind.isin("number", "string"), _decimal(text, said))
        .when((kind == "number") & is_bytes, F.concat(F.lit("bytes "), text))
        .when((kind == "number") & said["type"].isNotNull() | (kind == "binary") & is_bytes, text)
        .when(is_time & name.isin(*_UNITS) & text.rlike(WHOLE), _moment(text, name, kind))
        .when(is_time & (kind != "date") & name.isin(*_DATES) & text.rlike(WHOLE), _time(midnight, kind))
        .when(is_time & name.isin(*_CLOCKS), F.concat(text, F.lit(" of a day")))
        .when((kind == "timestamp_ntz") & (name == f"{_TIME}IsoTimestamp"), F.rtrim(text, F.lit("Z")))
    )


def _decimal(text: Column, said: Column) -> Column:
    """The digits of a number in base64."""
    digits = unscaled_digits(text, said["parameters"]["scale"])
    return F.coalesce(digits, F.concat(F.lit("base64 "), text))


def _moment(text: Column, name: Column, kind: Column) -> Column:
    """A count since 1970 as the text of a time, of a date where it is midnight."""
    units = set(_UNITS.values())
    names = {unit: [name for name, own in _UNITS.items() if own == unit] for unit in units}
    found = F.coalesce(*[F.when(name.isin(*names[unit]), instant(text, unit)) for unit in units])
    return F.coalesce(_time(found, kind), F.concat(text, F.lit(" since 1970")))


def _time(found: Column, kind: Column) -> Column:
    written = found.cast("string")
    return (
        F.when(kind == "timestamp", F.concat(written, F.lit("Z")))
        .when(kind == "date", F.regexp_replace(written, " 00:00:00$", ""))
        .otherwise(written)
    )
