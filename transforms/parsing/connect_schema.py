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

from lakejoin.transforms.parsing.options import ParseOptions
from lakejoin.transforms.parsing.typed_values import MICROS, WHOLE, parse_text
from lakejoin.transforms.parsing.unscaled_numbers import unscaled_digits

_CONNECT, _TIME = "org.apache.kafka.connect.data.", "io.debezium.time."
_DECIMAL = f"{_CONNECT}Decimal"
_DATES = (f"{_CONNECT}Date", f"{_TIME}Date")
_SECOND, _NANOS = 10**6, -1000
_UNITS = {
    f"{_CONNECT}Timestamp": 1000, f"{_TIME}Timestamp": 1000, f"{_TIME}MicroTimestamp": 1,
    f"{_TIME}NanoTimestamp": _NANOS, "$date": 1000, "$timestamp": _SECOND, **dict.fromkeys(_DATES, 86_400 * _SECOND),
}  # fmt: skip
"""Microseconds of the units that a value counts since 1970, by the name of its schema or its own; of nanoseconds, how
many make a microsecond, with a minus."""
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
_TIMES = ("timestamp", "timestamp_ntz", "date")
_OWN_NAME = r'^\{"(\$?[a-zA-Z]+)":(?:\{"\$?[a-zA-Z0-9]+":)?"?([^"}]*)'
_SCALED = r'^\{"scale":(-?[0-9]+),"value":"([^"]*)"\}$'
"""Objects that say what they are: by the name of their first member, with its value; as a number and its scale."""
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
        # what is not bound to the variable of a lambda is computed, planned and compiled wherever it is used
        found = F.transform(
            F.filter(columns, lambda column: column["field"] == part["name"]),
            lambda column: F.when(column["type"] == "array", column["items"]).otherwise(_said(column)),
        )
        is_list = F.exists(
            columns, lambda column: (column["field"] == part["name"]) & (column["type"] == "array")
        )
        in_list = F.from_json(part["text"], "array<string>")
        texts = F.when(is_list, in_list).otherwise(F.array(part["text"]))
        facts = F.transform(
            texts, lambda text: _facts(text, F.get(found, F.lit(0)), part["kind"], documents=documents)
        )
        read_texts = F.transform(facts, lambda fact: F.coalesce(_text(fact, part["kind"]), fact["text"]))
        known = F.exists(facts, lambda fact: fact["is_known"])
        return F.when(is_list, F.to_json(read_texts)).when(known, F.get(read_texts, F.lit(0)))

    return F.when(columns.isNotNull() | line.rlike(_DESCRIBED), F.transform(F.array(*parts), read))


def parse_known(
    text: Column, dtype: DataType, options: ParseOptions, exact: Column | None, known: Column
) -> Column:
    """Read a text by its type. `known`: it was read by the schema, whatever else is said of its encoding."""
    value = parse_text(text, dtype, options, None if exact is None else F.when(~known, exact))
    if options.encoding in {None, "string", "base64"}:
        return value
    return F.when(known, parse_text(text, dtype, replace(options, encoding=None))).otherwise(value)


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


def _said(column: Column) -> Column:
    """What a schema says of a value: type, name, parameters."""
    return F.struct(*[column[name].alias(name) for name in _TYPE.names])


def _facts(text: Column, said: Column, kind: Column, *, documents: bool) -> Column:
    """What is known of a text: a number in base64 and its scale, a count of a unit since 1970, or how it is read.

    `said`: of its schema. An object may say of itself what it is.
    """
    name, is_time = said["name"], kind.isin(*_TIMES)
    is_object = text.startswith("{")
    own, value = (F.regexp_extract(text, _OWN_NAME, group) for group in (1, 2))
    own = F.when(is_object, own)
    is_number = own.isin(*_NUMBERS)
    scaled = (kind == "number") & (own == "scale")
    in_base64 = F.when((name == _DECIMAL) & kind.isin("number", "string"), text).when(
        scaled, F.regexp_extract(text, _SCALED, 2)
    )
    scale = F.when(scaled, F.regexp_extract(text, _SCALED, 1)).otherwise(said["parameters"]["scale"])
    unit = F.create_map(*[F.lit(part) for pair in _UNITS.items() for part in pair])[
        F.coalesce(own, name, F.lit(""))
    ]
    count = F.when(is_object, value).otherwise(text)
    counts = (
        is_time
        & unit.isNotNull()
        & count.rlike(WHOLE)
        & ~((kind == "date") & F.coalesce(name.isin(*_DATES), F.lit(False)))
    )
    is_bytes = said["type"] == "bytes"
    known = (
        F.when((kind == "number") & is_number, value)
        .when(is_time & (own == "$date"), value)
        .when((kind == "binary") & (own == "$binary"), value)
        .when(F.lit(documents) & (kind == "string") & (is_number | own.isin(*_TEXTS)), value)
        .when((kind == "number") & is_bytes, F.concat(F.lit("bytes "), text))
        .when((kind == "number") & said["type"].isNotNull() | (kind == "binary") & is_bytes, text)
        .when(is_time & name.isin(*_CLOCKS), F.concat(text, F.lit(" of a day")))
        .when((kind == "timestamp_ntz") & (name == f"{_TIME}IsoTimestamp"), F.rtrim(text, F.lit("Z")))
        .when(
            (kind == "timestamp_ntz") & (name == f"{_TIME}ZonedTimestamp"),
            F.concat(text, F.lit(" of a zone")),
        )
    )
    return F.struct(
        text.alias("text"),
        in_base64.alias("base64"),
        scale.alias("scale"),
        F.when(counts, count).try_cast("bigint").alias("count"),
        F.when(counts, unit).alias("unit"),
        known.alias("known"),
        (in_base64.isNotNull() | counts | known.isNotNull()).alias("is_known"),
    )


def _text(fact: Column, kind: Column) -> Column:
    """The text of a value by what is known of it; what cannot be meant says so, and is read by none."""
    text, count, unit = fact["text"], fact["count"], fact["unit"]
    digits = F.coalesce(unscaled_digits(fact["base64"], fact["scale"]), F.concat(F.lit("base64 "), text))
    # nanoseconds are the only unit that is smaller than a microsecond
    cut = F.call_function("div", count - F.pmod(count, F.lit(-_NANOS)), F.lit(-_NANOS))
    micros = F.when(unit > 0, F.try_multiply(count, unit)).otherwise(cut)
    time = F.when(micros.between(*MICROS), F.timestamp_micros(micros)).cast("string")
    shown = (
        F.when(kind == "timestamp", F.concat(time, F.lit("Z")))
        .when(kind == "date", F.regexp_replace(time, " 00:00:00$", ""))
        .otherwise(time)
    )
    return (
        F.when(fact["base64"].isNotNull(), digits)
        .when(unit.isNotNull(), F.coalesce(shown, F.concat(text, F.lit(" since 1970"))))
        .otherwise(fact["known"])
    )
