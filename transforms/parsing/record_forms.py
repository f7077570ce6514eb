r"""Brings the forms in which a dump may hold a record to the one that is parsed.

A line may hold a record in a list of one, or in a string (`"{\"op\":…}"`). So may an event its value, as kcat prints it
and consumers on a console (`{"topic", "partition", "offset", "key", "payload": "{\"op\":…}"}`). MongoDB's connector
writes rows as text, and CloudEvents say beside the rows what happened. What is in a string is taken out of it, and
nothing is written anew, so numbers keep their digits. (Debezium documentation: "Emitting Change Event Records in
CloudEvents Format", "Debezium connector for MongoDB".)
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from lakejoin.transforms.model.schemas import RAW
from lakejoin.transforms.parsing.json_lines import is_broken, parse_line, record_of, texts
from lakejoin.transforms.parsing.json_patterns import STRING, after_members, members_but
from lakejoin.transforms.parsing.json_pieces import with_row_of
from lakejoin.transforms.parsing.limits import readable
from lakejoin.transforms.parsing.mongo_updates import with_updated_fields
from lakejoin.transforms.parsing.options import ParseOptions

LINE = "_lj_line"
"""Column with a line whose record, value and rows are objects; null for one that is too long to be parsed."""
WRAPPED = "_lj_wrapped"
"""Column with the record that holds a row as its `payload`, beside the schema."""
_OBJECT = "_lj_object"
_MARK = "\ufeff"
_STRINGS = 6
"""Strings that are taken apart: the value and its two rows, each perhaps a string in a string."""
_OF_CLOUD_EVENTS = {
    "lsn": "lsn", "txId": "txid", "ts_ms": "tsms", "connector": "connector", "db": "db", "schema": "schema",
    "table": "table", "collection": "collection",
}  # fmt: skip
"""What an event says of its source, and how CloudEvents call it behind `iodebezium`."""


_OPENS = r'"(?:value|payload)"\s*+:\s*+\{'
_IN_STRING = r'"(?:value|payload|after|before)"\s*+:\s*+"\s*+(?:\{|\\")'
_MEMBERS = members_but(f"{_OPENS}|{_IN_STRING}")
_FIRST = (
    rf'(?s)^(\s*+\{{{_MEMBERS}(?:{_OPENS}{_MEMBERS}){{0,3}}+(?={_IN_STRING})"[a-z]++"\s*+:\s*+)({STRING})'
)
"""A line up to the first member of the event that is a string, and this string."""
_CLOUD_DATA = after_members('"data"')
_WRAPPED_ROW = after_members('"payload"')
"""An object and, as group 1, the payload in it."""


def with_plain_events(lines: DataFrame, options: ParseOptions, *, documents: bool = False) -> DataFrame:
    """Put `LINE` beside lines (raw); one that holds no event in any of the forms stays as it is.

    `documents`: rows are MongoDB's, and an update may have but the fields that it set.
    """
    event = F.col(_OBJECT)
    repeated = F.sequence(F.lit(1), F.lit(_STRINGS))
    taken_out = F.aggregate(repeated, event, lambda found, _: _with_string_taken_out(found))
    cloud_event = F.when(event.contains('"iodebeziumop"'), _from_cloud_event(event))
    in_string = F.when(event.rlike(_IN_STRING), taken_out)
    frame = lines.withColumn(_OBJECT, _object_on(readable(F.col(RAW), options)))
    frame = frame.withColumn(LINE, F.coalesce(cloud_event, in_string, event)).drop(_OBJECT)
    return frame.withColumn(LINE, with_updated_fields(F.col(LINE))) if documents else frame


def with_plain_rows(lines: DataFrame, options: ParseOptions) -> DataFrame:
    """Put `LINE` beside lines (raw), and `WRAPPED`: the record whose `payload` it is, null where it is the record."""
    said, record = options.row_op, _object_on(readable(F.col(RAW), options))
    if not said.wrapped:
        record = with_row_of(record, said.members) if said.lists else record
        return lines.withColumn(LINE, record)
    frame, record = lines.withColumn(_OBJECT, record), F.col(_OBJECT)
    is_wrapped = record.contains('"payload"') & record.rlike(r'"schema"\s*+:\s*+(?:\{|null)')
    payload = F.when(is_wrapped, F.regexp_extract(record, _WRAPPED_ROW, 1))
    frame = frame.withColumn(LINE, F.when(payload != "", payload).otherwise(record))
    return frame.withColumn(WRAPPED, F.when(record != F.col(LINE), record)).drop(_OBJECT)


def nothing_as(line: Column) -> Column:
    """What a line is that holds no record, as kind of those that are ignored: null for one that holds something.

    `null` is what is left of a tombstone without its key.
    """
    is_nothing = line.rlike(r"^\s*+(?:null)?\s*+$")
    return F.when(is_nothing, F.when(line.contains("null"), "tombstone").otherwise("empty"))


def _object_on(line: Column) -> Column:
    """The object on a line: in a string, in a list of one, or as it is; without a byte order mark (RFC 8259)."""
    line = F.when(line.startswith(_MARK), F.substr(line, F.lit(2))).otherwise(line)
    first = F.substring(F.ltrim(line), 1, 1)
    in_list = F.regexp_extract(line, r"(?s)^\s*+\[(\s*+\{.*)\]\s*+$", 1)
    in_string = F.when(first == '"', decoded(decoded(line)))
    return in_string.when((first == "[") & (in_list != ""), in_list).otherwise(line)


def decoded(text: Column) -> Column:
    """What a string holds; what is no string stays as it is."""
    parsed = parse_line(F.when(F.ltrim(text).startswith('"'), text), StringType())
    held = F.transform(F.array(parsed), lambda found: F.when(~is_broken(found), record_of(found)))
    return F.coalesce(F.get(held, F.lit(0)), text)


def _with_string_taken_out(event: Column) -> Column:
    """The event with what its first string holds in the string's place."""
    before, string = (F.regexp_extract(event, _FIRST, group) for group in (1, 2))
    behind = F.substr(event, F.length(before) + F.length(string) + 1)
    # `payload` is kcat's name for a value; elsewhere it stands beside a schema
    before = F.regexp_replace(before, r'"payload"(\s*+:\s*+)$', '"value"$1')
    return F.when(event.rlike(_FIRST), F.concat(before, decoded(string), behind)).otherwise(event)


def _from_cloud_event(event: Column) -> Column:
    """The rows of a CloudEvent beside what its attributes say; null where it has no rows."""
    names = [f"iodebezium{name}" for name in ("op", *_OF_CLOUD_EVENTS.values())]
    said = F.from_json(event, texts(names))
    source = F.struct(*[said[f"iodebezium{name}"].alias(own) for own, name in _OF_CLOUD_EVENTS.items()])
    about = F.struct(
        said["iodebeziumop"].alias("op"), said["iodebeziumtsms"].alias("ts_ms"), source.alias("source")
    )
    data = F.regexp_extract(event, _CLOUD_DATA, 1)
    return F.when(
        data != "", F.concat(F.rtrim(F.to_json(about), F.lit("}")), F.lit("},"), F.substr(data, F.lit(2)))
    )
