"""Checks what must fit together within a table or stream: columns, key, sequence, event time, source."""

import re
from collections.abc import Callable
from functools import partial

from pydantic import TypeAdapter
from pyspark.sql.types import DataType, TimestampType

from lakejoin.orchestration.config.checked_document import Reading
from lakejoin.orchestration.config.checks.sources import check_needed, check_query, refuse_keys_of_others
from lakejoin.orchestration.config.problems import found
from lakejoin.orchestration.config.schema.column import encodings_of
from lakejoin.orchestration.config.schema.column_types import (
    may_be_key,
    may_be_sequence,
    parse_type,
    type_text,
)
from lakejoin.orchestration.config.schema.expression_types import Columns, unknown_column
from lakejoin.orchestration.config.schema.operation import DeclaredOperation
from lakejoin.orchestration.config.schema.values import parse_sequence
from lakejoin.storage.sources.files.path_patterns import has_day
from lakejoin.storage.sources.formats.known_formats import FORMATS, format_of
from lakejoin.storage.sources.formats.source_format import SourceFormat
from lakejoin.transforms.model.schemas import VALIDITY
from lakejoin.transforms.parsing.nested_json import is_readable
from lakejoin.transforms.parsing.row_ops import (
    DEFAULT_OP,
    RowOp,
    parts_of,
    path_from_record,
    place_of,
    tree_of,
)
from lakejoin.transforms.parsing.source_position import SOURCE

_OPERATION = TypeAdapter(DeclaredOperation)
Where = tuple[str, str]
"""`tables` or `streams`, and a name."""


def check_tables(reading: Reading) -> None:
    """Note the mistakes of every table and stream."""
    for kind in ("tables", "streams"):
        for name in reading.names(kind):
            where = (kind, name)
            _check_twins(reading, where)
            _check_readable(reading, where)
            _check_encodings(reading, where)
            _check_source_names(reading, where)
            _check_paths(reading, where)
            _check_operation(reading, where)
            _check_epochs(reading, where)
            _check_key(reading, where)
            _check_sequence(reading, where)
            _check_event_time(reading, where)
            _check_start(reading, where)
            _check_strict(reading, where)
            _check_format(reading, where)
    for name in reading.names("tables"):
        _check_versioned(reading, name)
        _check_truncate(reading, name)


def columns_of(reading: Reading, name: str, kind: str = "tables") -> Columns | None:
    """The declared columns of a table or stream, None where there are none that can be checked."""
    types: dict[str, DataType | None] = {}
    for column in reading.names(kind, name, "columns"):
        declared = reading.value(kind, name, "columns", column)
        text = declared.get("type") if isinstance(declared, dict) else declared
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
    """Refuse columns whose names differ in capitals only, which Spark does not tell apart."""
    first: dict[str, str] = {}
    for name in reading.names(*where, "columns"):
        twin = first.setdefault(name.lower(), name)
        if twin != name:
            path = (*where, "columns", name)
            reading.refuse(
                path, f"differs from the column {twin!r} in capitals only; rename one", at_key=True
            )


def _check_readable(reading: Reading, where: Where) -> None:
    """Refuse columns that Spark would refuse only in the first batch, after that is planned."""
    source_format = _format(reading, where)
    if source_format is None:
        return
    for name, dtype in (_columns(reading, where) or {}).items():
        path = (*where, "columns", name)
        said = [op for op in _row_op(reading, where).columns if op.lower() == name.lower() and op != name]
        if source_format.is_one_object and said:
            message = f"differs in capitals only from '{said[0]}', which says what a row does"
            reading.refuse(path, f"{message}; leave it out, or write it under another name", at_key=True)
        if source_format.is_text and dtype is not None and not is_readable(dtype):
            found = reading.value(*where, "source", "format")
            message = f"{type_text(dtype)} cannot be read from {found}, where the keys of a map are text"
            reading.refuse(path, f"{message}; declare map<string,…>")


def _check_encodings(reading: Reading, where: Where) -> None:
    """Refuse a way to write values that the type of their column has not."""
    for name, dtype in (_columns(reading, where) or {}).items():
        path = (*where, "columns", name, "as")
        encoding = reading.value(*path)
        if encoding is not None and dtype is not None and encoding not in (ways := encodings_of(dtype)):
            allowed = f"; allowed: {', '.join(ways)}" if ways else "; remove it"
            reading.refuse(
                path, f"values of type {type_text(dtype)} are not written as {encoding!r}{allowed}"
            )


def _check_source_names(reading: Reading, where: Where) -> None:
    """Refuse two columns that are read from what Spark does not tell apart."""
    first: dict[str, str] = {}
    for name in reading.names(*where, "columns"):
        path = (*where, "columns", name, "from")
        written = reading.value(*path) or name
        twin = first.setdefault(written.lower(), name)
        if twin != name and reading.value(*path) is not None:
            message = f"the column {twin!r} is read from the same, or from what differs in capitals only"
            reading.refuse(path, f"{message}; found {written!r}; name another")


def _check_paths(reading: Reading, where: Where) -> None:
    """Refuse paths that lead nowhere: without a name between dots, or on from what another column reads as text."""
    own = _format(reading, where)
    if own is None or not own.may_nest:
        return
    paths, row_op = {}, _row_op(reading, where)
    for name in reading.names(*where, "columns"):
        written = reading.value(*where, "columns", name, "from")
        place = place_of(name, written)
        if "" in place[1]:
            message = f"a path has a name before and behind each dot; found {written!r}"
            reading.refuse((*where, "columns", name, "from"), message)
            return
        paths[name] = path_from_record(place, row_op.row)
        try:
            tree_of([*paths.values(), *[parts_of(op)[1] for op in row_op.columns]])
        except ValueError as error:
            reading.refuse((*where, "columns", name), f"{error}; read one of them, or both as one struct")
            return


def _check_operation(reading: Reading, where: Where) -> None:
    """Refuse a preset of records that hold their rows for a format of rows, and `tables` where no row is of one."""
    source, own, row_op = (*where, "source"), _format(reading, where), _row_op(reading, where)
    if own is None or ("op",) in own.not_for:
        return
    found = reading.value(*source, "format")
    if row_op.row is not None and not own.may_nest:
        nesting = " or ".join(_forms(lambda one: one.may_nest))
        message = f"its rows lie in the member {row_op.row!r}, which format {found!r} has not"
        reading.refuse(
            (*source, "op"), f"{message}; use format {nesting}, or say `column`, `upsert`, `delete`"
        )
    if row_op.loads and reading.raw(*where, "sequence") is None:
        message = "the files of a full load may have names behind those of its changes, and would be newer"
        reading.refuse((*source, "op"), f"{message}; declare a sequence, such as the task's timestamp column")
    if reading.raw(*source, "tables") and not row_op.origin and ("tables",) not in own.not_for:
        message = "these rows do not say of which table they are; remove it, or name the preset in `op`"
        reading.refuse((*source, "tables"), message, at_key=True)
    if reading.raw(*source, "snapshots") and not row_op.placeholders and ("snapshots",) not in own.not_for:
        message = "these rows do not say which were read by a snapshot; remove it, or write `op: debezium-unwrapped`"
        reading.refuse((*source, "snapshots"), message, at_key=True)


def _check_epochs(reading: Reading, where: Where) -> None:
    """Refuse epochs of a source whose records are ordered by anything else than its log."""
    own, sequence = _format(reading, where), parse_sequence(reading.value(*where, "sequence")) or ()
    applies = own is not None and SOURCE in own.envelope
    if applies and reading.value(*where, "source", "epochs") and SOURCE not in sequence:
        message = "needs `sequence: source`, which they go before; write that, or remove them"
        reading.refuse((*where, "source", "epochs"), message, at_key=True)


def _row_op(reading: Reading, where: Where) -> RowOp:
    """How the rows of a source say what happened to them, the default where that has a mistake."""
    declared = reading.value(*where, "source", "op")
    return DEFAULT_OP if declared is None else _OPERATION.validate_python(declared).row_op


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
    columns, sequence = _columns(reading, where), parse_sequence(reading.value(*where, "sequence"))
    if columns is None or sequence is None:
        return
    own = _format(reading, where)
    envelope = own.envelope if own is not None else ()
    for index, name in enumerate(sequence):
        path, dtype = (*where, "sequence", index), columns.get(name)
        if name in sequence[:index]:
            reading.refuse(path, f"{name!r} already stands in the sequence")
        elif name not in columns and name not in envelope:
            carriers = _forms(partial(_carries, name))
            if carriers:
                message = (
                    f"only records of format {' or '.join(carriers)} carry {name!r}; name a declared column"
                )
                reading.refuse(path, message)
            else:
                reading.refuse(path, unknown_column(name, (*columns, *envelope)))
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
    """Refuse a versioned table without event time, or with columns named like the two that say when a row was valid."""
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
    """Not every format tells that a table was emptied."""
    own = _format(reading, ("tables", table))
    if own is not None and not own.truncates and "on_truncate" in reading.names("tables", table):
        tellers = " or ".join(_forms(lambda one: one.truncates))
        found = reading.value("tables", table, "source", "format")
        message = (
            f"only records of format {tellers} tell of truncation, found format {found!r}; remove on_truncate"
        )
        reading.refuse(("tables", table, "on_truncate"), message, at_key=True)


def _carries(name: str, one: SourceFormat) -> bool:
    return name in one.envelope


def _forms(has: Callable[[SourceFormat], bool]) -> list[str]:
    """The forms of records that have something, wherever they lie."""
    return [form for form, one in FORMATS.items() if "path" in one.needs and has(one)]


def _columns(reading: Reading, where: Where) -> Columns | None:
    return columns_of(reading, where[1], where[0])


def _format(reading: Reading, where: Where) -> SourceFormat | None:
    name = reading.value(*where, "source", "format")
    return None if name is None else format_of(name, reading.value(*where, "source", "value"))


def _check_start(reading: Reading, where: Where) -> None:
    source, own = (*where, "source"), _format(reading, where)
    start, path = reading.value(*source, "start"), reading.value(*source, "path")
    if start is None or (own is not None and ("start",) in own.not_for):
        return
    is_day = isinstance(start, str) and re.fullmatch(r"[0-9-]+", start)
    if own is not None and "path" in own.needs and not is_day:
        reading.refuse((*source, "start"), f"files begin with a day, as YYYY-MM-DD; found {found(start)}")
    elif path is not None and not has_day(path):
        needed = "needs {date} in path, or {year}, {month} and {day}"
        reading.refuse((*source, "start"), f"{needed}, found {path!r}; add it or remove start")


def _check_strict(reading: Reading, where: Where) -> None:
    source = (*where, "source")
    if reading.value(*source, "strict") and reading.value(*source, "on_schema_change") != "fail":
        reading.refuse((*source, "strict"), "needs `on_schema_change: fail`; add that, or remove strict")


def _check_format(reading: Reading, where: Where) -> None:
    """What means nothing in a format is refused, rather than passed over."""
    source, own = (*where, "source"), _format(reading, where)
    if own is None:
        return
    check_needed(reading, source, own)
    check_query(reading, source, own)
    refuse_keys_of_others(reading, source, own)
    path = reading.value(*source, "path")
    if own.one_place and path is not None and re.search(r"[*?\[\]{]", path):
        reading.refuse((*source, "path"), own.one_place)
