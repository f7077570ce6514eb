"""Keeps the rows of tables as records change them: one record after the other, in their order."""

from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any

Row = Mapping[str, Any]


class ChangedRows:
    """The rows of tables, by their keys."""

    def __init__(self, keys: Mapping[str, str | tuple[str, ...]]) -> None:
        """Begin with no rows. `keys`: the tables, each with the column that is its key, or the columns."""
        self._keys = {
            table: itemgetter(*([key] if isinstance(key, str) else key)) for table, key in keys.items()
        }
        self._rows: dict[str, dict[Any, Row]] = {table: {} for table in keys}

    def change(self, table: str, records: Iterable[Row]) -> None:
        """Apply records: of these `op` is `d` for a delete."""
        for record in records:
            rows, key = self._rows[table], self._keys[table](record)
            if record["op"] == "d":
                rows.pop(key, None)
            else:
                rows[key] = {name: value for name, value in record.items() if name != "op"}
