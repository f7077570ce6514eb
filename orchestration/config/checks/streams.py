"""Checks what must fit together in streams and their joins with tables."""

from lakejoin.orchestration.config.checked_document import Reading
from lakejoin.orchestration.config.problems import did_you_mean, listed
from lakejoin.orchestration.config.schema.values import parse_duration


def check_streams(reading: Reading) -> None:
    """Note the streams that share their name with a table."""
    for stream in reading.names("streams"):
        if stream in reading.names("tables"):
            message = f"a table is named '{stream}', too; tables, streams and joins share their names"
            reading.refuse(("streams", stream), message, at_key=True)


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
