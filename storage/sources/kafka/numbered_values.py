"""Turns values in a schema registry's format into text: a zero byte, the number of a schema, and what is written by it.

Avro becomes JSON with what Kafka Connect says of it beside, as its JsonConverter writes it, for the parsers know that
form. Values of other beginnings are text already. (Confluent: "Wire format".)
"""

import json
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

from lakejoin.storage.sources.kafka.schema_registry import Schema
from lakejoin.transforms.parsing.avro_schema import is_record, may_be_null, row_schema, uninterpreted

_HEAD = 5
"""Bytes before what is written."""


def numbers_in(records: DataFrame, names: list[str]) -> list[int]:
    """Return the numbers of all schemas that columns of bytes name, for which a job runs."""
    found = F.explode(F.array(*[_number(F.col(name)) for name in names])).alias("number")
    return sorted(
        row["number"] for row in records.select(found).distinct().collect() if row["number"] is not None
    )


def is_numbered(content: bytes | None) -> bool:
    """Whether bytes begin as those do that name a schema."""
    return content is not None and len(content) >= _HEAD and content[0] == 0


def as_text(content: Column, schemas: Mapping[int, Schema], *, with_schema: bool) -> Column:
    """Bytes as text. `with_schema`: what is in Avro has its schema beside it."""
    number, written = _number(content), F.substr(content, F.lit(_HEAD + 1))
    text = F.when(number.isNull(), content.cast("string"))
    for schema in schemas.values():
        own = F.when(number == schema.number, written)
        text = text.when(number == schema.number, _text(own, schema, with_schema=with_schema))
    return text


def _number(content: Column) -> Column:
    """The number of the schema, null for bytes that name none."""
    is_one = (F.octet_length(content) >= _HEAD) & (F.hex(F.substr(content, F.lit(1), F.lit(1))) == "00")
    return F.when(is_one, F.conv(F.hex(F.substr(content, F.lit(2), F.lit(4))), 16, 10).cast("bigint"))


def _text(written: Column, schema: Schema, *, with_schema: bool) -> Column:
    if schema.kind == "JSON":
        return written.cast("string")
    avro = schema.parsed
    decoded = from_avro(written, json.dumps(uninterpreted(avro)), {"mode": "PERMISSIVE"})
    if not is_record(avro):
        return decoded.cast("string")
    payload = F.to_json(decoded, {"ignoreNullFields": "false"})
    broken = F.concat(F.lit(f"no Avro of schema {schema.number}, in base64: "), F.base64(written))
    if with_schema:
        payload = F.concat(F.lit(f'{{"schema":{row_schema(avro)},"payload":'), payload, F.lit("}"))
    return F.when(_is_broken(written, decoded, avro["fields"]), broken).otherwise(payload)


def _is_broken(written: Column, decoded: Column, fields: Sequence[Mapping[str, Any]]) -> Column:
    """Whether a record could not be decoded: then each of its members is null."""
    required = [field["name"] for field in fields if not may_be_null(field["type"])]
    if required:
        return decoded[required[0]].isNull()
    all_null = reduce(and_, [decoded[field["name"]].isNull() for field in fields], F.lit(True))
    return all_null & (F.octet_length(written) != len(fields))  # a null takes one byte
