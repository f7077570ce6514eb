"""What must fit together within a table: columns, key, sequence, event time, source."""

from pyspark.sql.types import DataType, TimestampType

from orchestration.config.column_types import may_be_key, may_be_sequence, parse_type, type_text
from orchestration.config.expression_types import Columns, unknown_column
from orchestration.config.model import ENVELOPE
from orchestration.config.reading import Reading


def check_tables(reading: Reading) -> None:
    """Note the mistakes of every table."""
    for table in reading.names("tables"):
        _check_twins(reading, table)
        _check_key(reading, table)
        _check_sequence(reading, table)
        _check_event_time(reading, table)
        _check_start(reading, table)


def columns_of(reading: Reading, table: str) -> Columns | None:
    """The declared columns of a table, None where there are none to speak of."""
    types: dict[str, DataType | None] = {}
    for name in reading.names("tables", table, "columns"):
        text = reading.value("tables", table, "columns", name)
        types[name] = None if text is None else parse_type(text)
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


def _check_twins(reading: Reading, table: str) -> None:
    """Spark does not tell capitals apart in the names of columns."""
    first: dict[str, str] = {}
    for name in reading.names("tables", table, "columns"):
        twin = first.setdefault(name.lower(), name)
        if twin != name:
            path = ("tables", table, "columns", name)
            reading.refuse(
                path, f"differs from the column {twin!r} in capitals only; rename one", at_key=True
            )


def _check_key(reading: Reading, table: str) -> None:
    columns, key = columns_of(reading, table), key_of(reading, table)
    if columns is None or key is None:
        return
    for index, name in enumerate(key):
        path, dtype = ("tables", table, "key", index), columns.get(name)
        if name not in columns:
            reading.refuse(path, unknown_column(name, columns))
        elif name in key[:index]:
            reading.refuse(path, f"the column {name!r} already stands in the key")
        elif dtype is not None and (mistake := key_mistake(dtype)):
            reading.refuse(path, f"the column {name!r} is {mistake}")


def _check_sequence(reading: Reading, table: str) -> None:
    columns, sequence = columns_of(reading, table), reading.value("tables", table, "sequence")
    if columns is None or sequence is None:
        return
    debezium = reading.value("tables", table, "source", "format") == "debezium"
    for index, name in enumerate(sequence):
        path, dtype = ("tables", table, "sequence", index), columns.get(name)
        if name in sequence[:index]:
            reading.refuse(path, f"{name!r} already stands in the sequence")
        elif name not in columns and name in ENVELOPE and not debezium:
            reading.refuse(path, f"only records of format debezium carry {name!r}; name a declared column")
        elif name not in columns and name not in ENVELOPE:
            reading.refuse(path, unknown_column(name, (*columns, *(ENVELOPE if debezium else ()))))
        elif dtype is not None and not may_be_sequence(dtype):
            message = f"the column {name!r} is {type_text(dtype)}, which has no order in time"
            reading.refuse(path, f"{message}; allowed: numbers, text, dates and timestamps")


def _check_event_time(reading: Reading, table: str) -> None:
    columns, name = columns_of(reading, table), reading.value("tables", table, "event_time")
    if columns is None or name is None:
        return
    path, dtype = ("tables", table, "event_time"), columns.get(name)
    if name not in columns:
        reading.refuse(path, unknown_column(name, columns))
    elif dtype is not None and dtype != TimestampType():
        reading.refuse(
            path, f"the column {name!r} is {type_text(dtype)}; expected a column of type timestamp"
        )


def _check_start(reading: Reading, table: str) -> None:
    source = ("tables", table, "source")
    start, path = reading.value(*source, "start"), reading.value(*source, "path")
    if start is not None and path is not None and "{date}" not in path:
        reading.refuse((*source, "start"), f"needs {{date}} in path, found {path!r}; add it or remove start")
