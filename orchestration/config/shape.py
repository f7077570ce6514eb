"""Says what of tables and streams shapes the state in a lake, as plain JSON."""

from collections.abc import Mapping
from typing import Any

from lakejoin.orchestration.config.schema.column_types import type_text
from lakejoin.orchestration.config.schema.model import Input, Table
from lakejoin.orchestration.config.schema.stream import Stream
from lakejoin.storage.sources.files.path_patterns import has_day, has_hour


def shape_of_inputs(tables: Mapping[str, Table], streams: Mapping[str, Stream]) -> dict[str, Any]:
    """Tables and streams, without what says only how they are read from now on."""
    return {
        "tables": {name: _table_shape(table) for name, table in tables.items()},
        "streams": {name: _stream_shape(stream) for name, stream in streams.items()},
    }


def _input_shape(read: Input) -> dict[str, Any]:
    """Types in their canonical spelling, so that `long` for `bigint` is no change.

    Of a path only whether it has a date, which positions begin with: those without are before all that have one; and
    whether it has an hour, which follows. Of CSV and JSON what is no default and says where a record begins.
    """
    path, csv = read.source.path, read.source.dialect.shape
    source = {key: getattr(read.source, key) for key in ("format", "time", "timezone")}
    return {
        "columns": {name: type_text(column.data_type) for name, column in read.columns.items()},
        "source": source
        | {"path": "hour" if has_hour(path) else has_day(path)}
        | ({"csv": csv} if csv else {})
        | ({} if read.source.one_per_line else {"one_per_line": False}),
        "key": read.key,
        "sequence": read.sequence,
        "where": read.where,
    }


def _table_shape(table: Table) -> dict[str, Any]:
    return _input_shape(table) | {
        "event_time": table.event_time,
        "versioned": table.versioned is not None,
        "tombstone_retention": table.tombstone_retention.total_seconds(),
        "on_truncate": table.on_truncate,
    }


def _stream_shape(stream: Stream) -> dict[str, Any]:
    return _input_shape(stream) | {"event_time": stream.event_time}
