"""Hashes what a table holds, whatever the order of its rows and however they lie in files.

The hash of a row is SHA-256 over a text that no other row has: each value with its length, null apart. The quarters of
these hashes are added over all rows, so that a doubled row counts twice. SHA-256 over the sums, the columns and the
number of rows is the hash of the table. DuckDB computes it, without a JVM.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence

import pyarrow as pa
from pydantic import BaseModel, ConfigDict
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DoubleType,
    FloatType,
    MapType,
    StructType,
)

from lakejoin.orchestration.verification.duck_tables import connected
from lakejoin.storage.delta_log.arrow_query import identifier

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


def content_of(rows: pa.RecordBatchReader, columns: StructType, left_out: Sequence[str] = ()) -> Content:
    """Hash rows as they come, all of these columns.

    left_out: columns that the answer names as not covered. Raises `WrongUsage` where DuckDB is not installed.
    """
    ordered = sorted(columns, key=lambda column: column.name)
    row = (
        " || ".join(_text(f"_lj_row.{identifier(column.name)}", column.dataType) for column in ordered)
        or "''"
    )
    quarters = ", ".join(f"sum(('0x' || substr(h, {1 + 16 * n}, 16))::UBIGINT)" for n in range(4))
    with connected() as connection:
        # DuckDB has two instants that it takes for infinite, and zones in an extension: times are numbers
        connection.register(
            "_lj_arriving", rows.cast(pa.schema([_with_numbers(field) for field in rows.schema]))
        )
        found = connection.execute(
            f"SELECT count(*), {quarters}, count(h) FROM (SELECT sha256({row}) AS h FROM _lj_arriving AS _lj_row)"
        ).fetchone()
    assert found is not None
    *numbers, hashed = found
    if hashed != numbers[0]:
        raise RuntimeError(f"{numbers[0] - hashed} rows have no text to be hashed")
    types = {column.name: column.dataType.simpleString() for column in ordered}
    whole = json.dumps([METHOD, types, *[str(number or 0) for number in numbers]], sort_keys=True)
    digest = hashlib.sha256(whole.encode()).hexdigest()
    return Content(rows=numbers[0], columns=types, left_out=tuple(left_out), sha256=digest)


def _with_numbers(field: pa.Field) -> pa.Field:
    """Return a field whose times are whole numbers of microseconds, also within values."""
    return field.with_type(_numbers(field.type))


def _numbers(dtype: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(dtype):
        return pa.int64()
    if pa.types.is_struct(dtype):
        return pa.struct([_with_numbers(dtype.field(n)) for n in range(dtype.num_fields)])
    if pa.types.is_map(dtype):
        return pa.map_(_numbers(dtype.key_type), _numbers(dtype.item_type))
    if pa.types.is_list(dtype) or pa.types.is_large_list(dtype):
        return pa.list_(_with_numbers(dtype.value_field))
    return dtype


_FLOAT = "CASE WHEN isnan({0}) THEN 'nan' ELSE ({0} + 0)::VARCHAR END"
"""All that are no number are one, and so are both zeros."""
_SCALARS: Mapping[type[DataType], str] = {
    BinaryType: "hex({0})",
    FloatType: _FLOAT,
    DoubleType: _FLOAT,
}


def _text(sql: str, dtype: DataType, depth: int = 0) -> str:
    """Return the SQL of the text of a value: `n` of null, else its length and what it is."""
    text, bound = _of_value(sql, dtype, depth), f"_lj_t{depth}"
    with_length = f"strlen({text}) || ':' || {text}"
    if isinstance(dtype, ArrayType | MapType | StructType):  # said twice in each level, it would be endless
        with_length = f"list_transform([{text}], lambda {bound}: strlen({bound}) || ':' || {bound})[1]"
    return f"CASE WHEN {sql} IS NULL THEN 'n' ELSE {with_length} END"


def _of_value(sql: str, dtype: DataType, depth: int) -> str:
    item = f"_lj_e{depth}"
    match dtype:
        case StructType():
            fields = [_text(f"{sql}.{identifier(field.name)}", field.dataType, depth + 1) for field in dtype]
            return f"concat({', '.join(fields)})" if fields else "''"
        case ArrayType():
            return _of_list(sql, item, _text(item, dtype.elementType, depth + 1))
        case MapType():
            key = _text(f"{item}.key", dtype.keyType, depth + 1)
            value = _text(f"{item}.value", dtype.valueType, depth + 1)
            return _of_list(f"map_entries({sql})", item, f"{key} || {value}", ordered=True)
    return next((text for kind, text in _SCALARS.items() if isinstance(dtype, kind)), "{0}::VARCHAR").format(
        sql
    )


def _of_list(sql: str, item: str, text: str, *, ordered: bool = False) -> str:
    texts = f"list_transform({sql}, lambda {item}: {text})"
    return f"array_to_string({f'list_sort({texts})' if ordered else texts}, '')"
