"""What must fit together within a table or stream: columns, key, sequence, event time, source."""

import re

from pyspark.sql.types import DataType, TimestampType

from orchestration.config.checked_document import Reading
from orchestration.config.schema.column_types import may_be_key, may_be_sequence, parse_type, type_text
from orchestration.config.schema.expression_types import Columns, unknown_column
from orchestration.config.schema.model import ENVELOPE
from transforms.changelog.versions import VALIDITY
from transforms.parsing.flat_rows import OP_COLUMN
from transforms.parsing.nested_json import is_readable

_TEXT_FORMATS = frozenset({"debezium", "jsonl", "csv"})

Where = tuple[str, str]
"""`tables` or `streams`, and a name."""


def check_tables(reading: Reading) -> None:
    """Note the mistakes of every table and stream."""
    for kind in ("tables", "streams"):
        for name in reading.names(kind):
            where = (kind, name)
            _check_twins(reading, where)
            _check_readable(reading, where)
            _check_key(reading, where)
            _check_sequence(reading, where)
            _check_event_time(reading, where)
            _check_start(reading, where)
            _check_strict(reading, where)
            _check_feed(reading, where)
    for name in reading.names("tables"):
        _check_versioned(reading, name)
        _check_truncate(reading, name)


def columns_of(reading: Reading, name: str, kind: str = "tables") -> Columns | None:
    """The declared columns of a table or stream, None where there are none to speak of."""
    types: dict[str, DataType | None] = {}
    for column in reading.names(kind, name, "columns"):
        text = reading.value(kind, name, "columns", column)
        types[column] = None if text is None else parse_type(text)
    return types or None


def key_of(reading: Reading, table: str) -> tuple[str, ...] | None:
    """The key columns of a table, None where they have a mistake."""
    key: tuple[str, ...] | None = reading.value("tables", table, "key")
    return key


def key_mistake(dtype: DataType) -> str | None:
    """Why values of the type cannot be compared as keys, None if they can."""
    if may_be_key(dtype):
        return None
    return f"{type_text(dtype)}, but a key or foreign key is never float, double, array, map or struct"


def _check_twins(reading: Reading, where: Where) -> None:
    """Spark does not tell capitals apart in the names of columns."""
    first: dict[str, str] = {}
    for name in reading.names(*where, "columns"):
        twin = first.setdefault(name.lower(), name)
        if twin != name:
            path = (*where, "columns", name)
            reading.refuse(
                path, f"differs from the column {twin!r} in capitals only; rename one", at_key=True
            )


def _check_readable(reading: Reading, where: Where) -> None:
    """What Spark would refuse only when it reads the first batch, after that is planned."""
    source_format = reading.value(*where, "source", "format")
    for name, dtype in (_columns(reading, where) or {}).items():
        path = (*where, "columns", name)
        if source_format == "jsonl" and name.lower() == OP_COLUMN != name:
            message = f"differs in capitals only from '{OP_COLUMN}', which says what a row does"
            reading.refuse(path, f"{message}; leave it out, or write it under another name", at_key=True)
        if source_format in _TEXT_FORMATS and dtype is not None and not is_readable(dtype):
            message = (
                f"{type_text(dtype)} cannot be read from {source_format}, where the keys of a map are text"
            )
            reading.refuse(path, f"{message}; declare map<string,…>")


def _check_key(reading: Reading, where: Where) -> None:
    columns, key = _columns(reading, where), reading.value(*where, "key")
    if columns is None or key is None:
        return
    for index, name in enumerate(key):
        path, dtype = (*where, "key", index), columns.get(name)
        if name not in columns:
            reading.refuse(path, unknown_column(name, columns))
        elif name in key[:index]:
            reading.refuse(path, f"the column {name!r} already stands in the key")
        elif dtype is not None and (mistake := key_mistake(dtype)):
            reading.refuse(path, f"the column {name!r} is {mistake}")


def _check_sequence(reading: Reading, where: Where) -> None:
    columns, sequence = _columns(reading, where), reading.value(*where, "sequence")
    if columns is None or sequence is None:
        return
    debezium = reading.value(*where, "source", "format") == "debezium"
    for index, name in enumerate(sequence):
        path, dtype = (*where, "sequence", index), columns.get(name)
        if name in sequence[:index]:
            reading.refuse(path, f"{name!r} already stands in the sequence")
        elif name not in columns and name in ENVELOPE and not debezium:
            reading.refuse(path, f"only records of format debezium carry {name!r}; name a declared column")
        elif name not in columns and name not in ENVELOPE:
            reading.refuse(path, unknown_column(name, (*columns, *(ENVELOPE if debezium else ()))))
        elif dtype is not None and not may_be_sequence(dtype):
            message = f"the column {name!r} is {type_text(dtype)}, which has no order in time"
            reading.refuse(path, f"{message}; allowed: numbers, text, dates and timestamps")


def _check_event_time(reading: Reading, where: Where) -> None:
    columns, name = _columns(reading, where), reading.value(*where, "event_time")
    if columns is None or name is None:
        return
    path, dtype = (*where, "event_time"), columns.get(name)
    if name not in columns:
        reading.refuse(path, unknown_column(name, columns))
    elif dtype is not None and dtype != TimestampType():
        reading.refuse(
            path, f"the column {name!r} is {type_text(dtype)}; expected a column of type timestamp"
        )


def _check_versioned(reading: Reading, table: str) -> None:
    """What a table keeps by event time needs one, and room for the two columns that say when a row was valid."""
    where = ("tables", table)
    if reading.raw(*where, "versioned") is None:
        if reading.raw(*where, "max_future") is not None:
            reading.refuse(
                (*where, "max_future"), "is for versioned tables and streams; remove it", at_key=True
            )
        return
    if reading.raw(*where, "event_time") is None:
        message = "needs event_time, by which versions are ordered; name a column of type timestamp"
        reading.refuse((*where, "versioned"), message, at_key=True)
    for name in reading.names(*where, "columns"):
        if name.lower() in VALIDITY:
            message = f"the name is taken in a versioned table ({', '.join(VALIDITY)}); rename the column"
            reading.refuse((*where, "columns", name), message, at_key=True)


def _check_truncate(reading: Reading, table: str) -> None:
    """Only Debezium tells that a table was emptied."""
    found = reading.value("tables", table, "source", "format")
    if found not in (None, "debezium") and "on_truncate" in reading.names("tables", table):
        message = (
            f"only records of format debezium tell of truncation, found format {found!r}; remove on_truncate"
        )
        reading.refuse(("tables", table, "on_truncate"), message, at_key=True)


def _columns(reading: Reading, where: Where) -> Columns | None:
    return columns_of(reading, where[1], where[0])


def _check_start(reading: Reading, where: Where) -> None:
    source = (*where, "source")
    start, path = reading.value(*source, "start"), reading.value(*source, "path")
    is_feed = reading.value(*source, "format") == "delta"
    if start is not None and path is not None and "{date}" not in path and not is_feed:
        reading.refuse((*source, "start"), f"needs {{date}} in path, found {path!r}; add it or remove start")


def _check_strict(reading: Reading, where: Where) -> None:
    source = (*where, "source")
    if reading.value(*source, "strict") and reading.value(*source, "on_schema_change") != "fail":
        reading.refuse((*source, "strict"), "needs `on_schema_change: fail`; add that, or remove strict")


def _check_feed(reading: Reading, where: Where) -> None:
    """A Delta table is no set of files: its log says what is new, and when it is whole."""
    source = (*where, "source")
    if reading.value(*source, "format") != "delta":
        return
    for name in ("start", "settle"):
        if name in reading.names(*source):
            reading.refuse(
                (*source, name), "is for files; the log of a Delta table says what is new. Remove it"
            )
    for name in ("file", "ratio"):
        if name in reading.names(*source, "limits"):
            message = "limits files that are read whole, and found format 'delta', whose rows Spark reads. Remove it"
            reading.refuse((*source, "limits", name), message, at_key=True)
    path = reading.value(*source, "path")
    if path is not None and re.search(r"[*?\[\]{]", path):
        message = "{date} and wildcards stand for files; write the directory of one Delta table"
        reading.refuse((*source, "path"), message)
