"""Orders events by where their change stands in the log of its database: a text that sorts as the log does.

A read of a snapshot stands before the changes at its own position. One that has none (of an incremental snapshot)
stands before all changes, for these come with the log whatever it read. (Debezium documentation: the `source` block of
each connector; "Incremental snapshots".)
"""

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

SOURCE = "source"
"""What a sequence calls the position."""
MEMBERS = (
    "connector", "ts_ms", "lsn", "file", "pos", "row", "commit_lsn", "change_lsn", "event_serial_no", "scn", "rs_id",
    "ssn", "txSeq", "ord",
)  # fmt: skip
"""What is read of the `source` of an event."""
_LONG, _INT = 20, 10
"""Digits that numbers of 64 and 32 bits are filled up to."""


def position_in_source(source: Column, is_read: Column, epochs: Sequence[int]) -> Column:
    """The position of an event, null for one of an unknown database.

    `epochs`: when logs begin anew, in milliseconds since 1970, rising: what `source.ts_ms` says is of then or later
    stands above all before it.
    """
    kind = F.when(is_read, "0").otherwise("1")
    connector = F.coalesce(source["connector"], F.when(source["lsn"].isNotNull(), "postgresql"))
    file = F.regexp_extract(source["file"], r"([0-9]+)$", 1)
    binlog = F.concat(
        _number(file, _INT), _number(source["pos"], _LONG), kind, _number(source["row"], _INT, "0")
    )
    change = F.concat(
        _log_place(source["commit_lsn"]), kind, F.coalesce(_log_place(source["change_lsn"]), F.lit(""))
    )
    place = (
        F.when(connector == "postgresql", F.concat(_number(source["lsn"], _LONG), kind))
        .when(connector.isin("mysql", "mariadb"), binlog)
        .when(
            connector.isin("sqlserver", "db2"),
            F.concat(change, _number(source["event_serial_no"], _INT, "0")),
        )
        .when(
            connector == "oracle",
            F.concat(
                _number(source["scn"], _LONG),
                kind,
                F.coalesce(F.lower(F.trim(source["rs_id"])), F.lit("")),
                _number(source["ssn"], _INT, "0"),
                _number(source["txSeq"], _LONG, "0"),
            ),
        )
        .when(
            connector == "mongodb",
            F.concat(_number(source["ts_ms"], _LONG), kind, _number(source["ord"], _INT, "0")),
        )
    )
    time = source["ts_ms"].try_cast("bigint")
    epoch = sum((F.coalesce((time >= start).cast("int"), F.lit(0)) for start in epochs), F.lit(0))
    known = F.coalesce(place, F.when(is_read & connector.isNotNull(), ""))
    return F.concat(F.lpad(epoch.cast("string"), 4, "0"), F.lit("."), known)


def _number(text: Column, digits: int, default: str | None = None) -> Column:
    """A number filled up with zeros, null for none. `default`: where the event has no such member."""
    found = F.when(text.rlike(f"^[0-9]{{1,{digits}}}$"), F.lpad(text, digits, "0"))
    return found if default is None else F.coalesce(found, F.lit(default * digits))


def _log_place(text: Column) -> Column:
    """A place in SQL Server's log, which is written at a fixed width."""
    return F.when(text.rlike("^[0-9a-fA-F:]+$"), F.lower(text))
