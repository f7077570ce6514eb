"""Checks what must fit together in streams and their joins with tables."""

from pyspark.sql.types import BooleanType

from orchestration.config.checked_document import Reading
from orchestration.config.checks.tables import columns_of
from orchestration.config.problems import did_you_mean, listed
from orchestration.config.schema.column_types import type_text
from orchestration.config.schema.expressions import RULE, expression_type
from orchestration.config.schema.values import parse_duration

_CONDITION = "a condition is a deterministic scalar expression over the row"


def check_streams(reading: Reading) -> None:
    """Note the mistakes of every stream beside those it shares with tables."""
    for stream in reading.names("streams"):
        if stream in reading.names("tables"):
            message = f"a table is named '{stream}', too; tables, streams and joins share their names"
            reading.refuse(("streams", stream), message, at_key=True)
        _check_where(reading, stream)


def _check_where(reading: Reading, stream: str) -> None:
    path = ("streams", stream, "where")
    columns, text = columns_of(reading, stream, "streams"), reading.value(*path)
    if columns is None or text is None:
        return
    try:
        dtype = expression_type(text, columns)
    except ValueError as error:
        reading.refuse(path, f"{text!r} {error}".replace(RULE, _CONDITION))
        return
    if dtype is not None and dtype != BooleanType():
        reading.refuse(path, f"{text!r} is {type_text(dtype)}; expected a condition, which is true or false")


def check_stream_join(reading: Reading, join: str) -> None:
    """Note what is wrong with the sides of a stream's join, and with its grace."""
    streams, tables = list(reading.names("streams")), list(reading.names("tables"))
    _check_side(
        reading, join, "stream", streams, "table" if reading.value("joins", join, "stream") in tables else ""
    )
    _check_side(
        reading, join, "table", tables, "stream" if reading.value("joins", join, "table") in streams else ""
    )
    _check_grace(reading, join)


def _check_side(reading: Reading, join: str, side: str, known: list[str], other: str) -> None:
    name = reading.value("joins", join, side)
    if name is None or name in known:
        return
    if other:
        message = f"'{name}' is a {other}; expected a {side}"
    else:
        message = f"no {side} is named '{name}'{did_you_mean(name, known)}"
    reading.refuse(("joins", join, side), f"{message} ({side}s: {listed(known) or 'none'})")


def _check_grace(reading: Reading, join: str) -> None:
    where = ("joins", join)
    grace, table = reading.value(*where, "grace"), reading.value(*where, "table")
    if grace is None:
        if reading.raw(*where, "grace") is None and reading.raw(*where, "late") is not None:
            reading.refuse(
                (*where, "late"), "needs grace: without it no record is late; remove it", at_key=True
            )
        return
    if table is None or table not in reading.names("tables"):
        return
    if reading.raw("tables", table, "versioned") is None:
        message = (
            f"needs a versioned table, and '{table}' is none: what it learns late would overwrite what was there; "
            "declare `versioned` on the table, or remove grace"
        )
        reading.refuse((*where, "grace"), message)
        return
    retention = reading.value("tables", table, "versioned", "history_retention")
    if retention is not None and parse_duration(grace) > parse_duration(retention):
        message = (
            f"{grace} is longer than the history_retention of '{table}' ({retention}): the version that a record "
            "waits for could be gone; expected at most that"
        )
        reading.refuse((*where, "grace"), message)
