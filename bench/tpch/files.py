"""The files of a workload: the base from TPC-H's generator, change rows as Parquet, all of it as JSON lines."""

import gzip
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from bench.tpch.answers import change_file
from bench.tpch.schemas import CELEBRITY, LEFT, MONEY, RIGHT, START, Row, body

SCHEMAS: Mapping[str, pa.Schema] = {"left": LEFT, "right": RIGHT}
"""The two sides and what their files hold."""

_TABLES = {"left": "orders", "right": "customer"}
_TYPES = {MONEY: "decimal(15,2)", pa.date32(): "date", pa.string(): "varchar", pa.int64(): "bigint"}
_ROWS_AT_ONCE = 50_000


def write_base(connection: duckdb.DuckDBPyConnection, workload: Path, scale: float, hot_share: float) -> None:
    """Write the initial snapshot of both sides, in the order of their keys.

    `hot_share`: about so much of all orders is given to customer `CELEBRITY`; 0 leaves them as they are.
    """
    with tempfile.TemporaryDirectory(dir=workload) as scratch:
        subprocess.run(
            [
                _generator(), "parquet", "-s", f"{scale:g}", "--tables=orders,customer", "--output-dir", scratch
            ],
            check=True,
        )  # fmt: skip
        for side, table in _TABLES.items():
            expressions = {"o_custkey": _hot_orders(hot_share)} if hot_share else {}
            source, target = Path(scratch) / f"{table}.parquet", change_file(workload, side, 0)
            connection.execute(_base_query(SCHEMAS[side], expressions, source, target))


def _hot_orders(share: float) -> str:
    """The foreign key of an order where every order that is drawn by its key belongs to one customer."""
    drawn = f"o_orderkey * 2654435761 % 4294967296 % {round(1 / share)} = 0"
    return f"case when {drawn} then {CELEBRITY} else o_custkey end"


def _base_query(schema: pa.Schema, expressions: Mapping[str, str], source: Path, target: Path) -> str:
    columns = body(schema)
    values = ", ".join(
        f"({expressions.get(name, name)})::{_TYPES[schema.field(name).type]} as {name}" for name in columns
    )
    return f"""copy (
        select 'r' as op, o as "offset", to_timestamp({int(START.timestamp())} + o / 1000.0) as event_time, {values}
        from (select *, row_number() over (order by {columns[0]}) - 1 as o from read_parquet('{source}'))
        order by o
    ) to '{target}' (format parquet, compression zstd)"""


def _generator() -> str:
    """The program `tpchgen-cli`: on PATH, or beside this Python."""
    return shutil.which("tpchgen-cli") or str(Path(sys.executable).parent / "tpchgen-cli")


def write_changes(rows: Sequence[Row], schema: pa.Schema, path: Path) -> None:
    """Write change rows; no rows make a file without any."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    pq.write_table(pa.table(arrays, schema=schema), path)


def write_json_lines(workload: Path) -> None:
    """Write every Parquet file again as gzipped JSON lines; decimals, dates and times become text."""
    for file in sorted(path for side in SCHEMAS for path in (workload / side).glob("*.parquet")):
        with gzip.open(file.with_suffix(".jsonl.gz"), "wt", compresslevel=1) as lines:
            for part in pq.ParquetFile(file).iter_batches(_ROWS_AT_ONCE):
                for row in part.to_pylist():
                    row["event_time"] = row["event_time"].strftime("%Y-%m-%dT%H:%M:%S.%fZ")
                    lines.write(json.dumps(row, default=str) + "\n")
