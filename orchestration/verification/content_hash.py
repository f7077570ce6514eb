"""Hashes what a table holds, whatever the order of its rows and however they lie in files.

The hash of a row is SHA-256 over a text that no other row has: each value with its length, null apart. The quarters of
these hashes are added over all rows, so that a doubled row counts twice. SHA-256 over the sums, the columns and the
number of rows is the hash of the table. DuckDB computes it, without a JVM.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DoubleType,
    FloatType,
    MapType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from lakejoin.storage.delta_log.arrow_query import identifier

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

METHOD = "sha256-rows-added-1"
"""Which method made a hash: another number is another method, and compares with none of this one."""


class Content(BaseModel):
    """What a table holds."""

    model_config = ConfigDict(frozen=True)
    rows: int
    columns: dict[str, str]
    """Those that the hash covers, with their types."""
    left_out: tuple[str, ...]
    """Those that it does not."""
    sha256: str


def content_of(
    connection: "DuckDBPyConnection", table: str, columns: StructType, left_out: tuple[str, ...] = ()
) -> Content:
    """Hash columns of a table of DuckDB, whose times are in UTC.

    left_out: said in the answer; columns that are not among `columns`.
    """
    ordered = sorted(columns, key=lambda column: column.name)
    row = " || ".join(_text(identifier(column.name), column.dataType) for column in ordered) or "''"
    quarters = ", ".join(f"sum(('0x' || substr(h, {1 + 16 * n}, 16))::UBIGINT)" for n in range(4))
    found = connection.execute(
        f"SELECT count(*), {quarters} FROM (SELECT sha256({row}) AS h FROM {table})"
    ).fetchone()
    assert found is not None
    types = {column.name: column.dataType.simpleString() for column in ordered}
    whole = json.dumps([METHOD, types, *[str(number or 0) for number in found]], sort_keys=True)
    digest = hashlib.sha256(whole.encode()).hexdigest()
    return Content(rows=found[0], columns=types, left_out=left_out, sha256=digest)


_SCALARS: Mapping[type[DataType], str] = {
    BinaryType: "hex({0})",
    TimestampType: "epoch_us({0})::VARCHAR",
    TimestampNTZType: "epoch_us({0})::VARCHAR",
    FloatType: "({0} + 0)::VARCHAR",  # -0.0 is 0.0
    DoubleType: "({0} + 0)::VARCHAR",
}


def _text(sql: str, dtype: DataType, depth: int = 0) -> str:
    """Return the SQL of the text of a value: `n` of null, else its length and what it is."""
    text = _of_value(sql, dtype, depth)
    return f"CASE WHEN {sql} IS NULL THEN 'n' ELSE strlen({text}) || ':' || {text} END"


def _of_value(sql: str, dtype: DataType, depth: int) -> str:
    item = f"_lj_e{depth}"
    match dtype:
        case StructType():
            fields = [_text(f"{sql}.{identifier(field.name)}", field.dataType, depth + 1) for field in dtype]
            return f"concat({', '.join(fields)})" if fields else "''"
        case ArrayType():
            return _of_list(sql, item, _text(item, dtype.elementType, depth + 1))
        case MapType():
            entry = [
                _text(f"{item}.key", dtype.keyType, depth + 1),
                _text(f"{item}.value", dtype.valueType, depth + 1),
            ]
            return _of_list(f"map_entries({sql})", item, " || ".join(entry), ordered=True)
    return next((text for kind, text in _SCALARS.items() if isinstance(dtype, kind)), "{0}::VARCHAR").format(
        sql
    )


def _of_list(sql: str, item: str, text: str, *, ordered: bool = False) -> str:
    texts = f"list_transform({sql}, lambda {item}: {text})"
    return f"array_to_string({f'list_sort({texts})' if ordered else texts}, '')"
