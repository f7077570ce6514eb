"""Sources in Avro and ORC, from their files to a joined table: changes, snapshots, and files that are torn."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from pyarrow import orc
from pyspark.sql import SparkSession

from faults.shop import make_pipeline
from lakejoin.orchestration.runs.run import run_batches
from lakejoin.storage.errors import SourceBroken
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake, joined_of

TEXT = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {format: CHANGES, path: "orders/{date}"}
    columns: {id: bigint, customer: bigint}
    key: [id]
    max_bad_ratio: 0.9
  customers:
    source: {format: SNAPSHOTS, path: "customers/{date}", mode: snapshot}
    columns: {customer: bigint, city: string}
    key: [customer]
joins:
  located: {left: orders, right: customers, foreign_key: [customer], how: left}
"""
Rows = Mapping[str, list[Any]]
AVRO = {int: "long", str: "string"}


def in_avro(path: Path, rows: Rows) -> None:
    """Write columns as an Avro file."""
    kinds = {
        name: next(type(value) for value in values if value is not None) for name, values in rows.items()
    }
    fields = [{"name": name, "type": ["null", AVRO[kind]]} for name, kind in kinds.items()]
    schema = fastavro.parse_schema({"type": "record", "name": "Row", "fields": fields})
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as file:
        fastavro.writer(
            file, schema, [dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True)]
        )


def in_orc(path: Path, rows: Rows) -> None:
    """Write them as an ORC file."""
    path.parent.mkdir(exist_ok=True)
    orc.write_table(pa.table(rows), path, compression="zlib")


def damaged_avro(content: bytes) -> bytes:
    """A text becomes shorter than nothing."""
    assert b"\x02d\x02" in content
    return content.replace(b"\x02d\x02", b"\x01d\x02")


def damaged_orc(content: bytes) -> bytes:
    """What stands behind the rows of a stripe and says where they are is no longer that."""
    start = len(content) // 3
    return content[:start] + b"\xff" * 30 + content[start + 30 :]


WRITE: Mapping[str, Callable[[Path, Rows], None]] = {"avro": in_avro, "orc": in_orc}
DAMAGE: Mapping[str, Callable[[bytes], bytes]] = {"avro": damaged_avro, "orc": damaged_orc}


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.bad_input(41)
@pytest.mark.parametrize(("changes", "snapshots"), [("avro", "orc"), ("orc", "avro")])
def test_changes_meet_snapshots_and_torn_files_stop_a_run_before_it_plans(
    spark: SparkSession, tmp_path: Path, changes: str, snapshots: str
) -> None:
    """Updates, deletes, and rows that a snapshot has no more; a file is torn at its end, then within."""
    write, snap = WRITE[changes], WRITE[snapshots]
    orders, customers = tmp_path / "orders", tmp_path / "customers"
    write(orders / "2024-01-01", {"op": ["c"] * 4, "id": [1, 2, 3, 4], "customer": [7, 8, 7, None]})
    snap(customers / "2024-01-01", {"customer": [7, 8, 9], "city": ["Bonn", "Rome", "Oslo"]})
    pipeline = make_pipeline(tmp_path, TEXT.replace("CHANGES", changes).replace("SNAPSHOTS", snapshots))

    def joined() -> list[tuple[Any, ...]]:
        rows = spark.read.format("delta").load(Lake(pipeline.lake).path(joined_of("located")))
        return sorted(tuple(row) for row in rows.select("id", "customer", "right_city").collect())

    list(run_batches(pipeline, spark))
    assert joined() == [(1, 7, "Bonn"), (2, 8, "Rome"), (3, 7, "Bonn"), (4, None, None)]

    write(orders / "2024-01-02", {"op": ["u", "d", "u", "c"], "id": [1, 2, 4, 5], "customer": [9, 8, 8, 7]})
    snap(customers / "2024-01-02", {"customer": [7, 8], "city": ["Kiel", "Rome"]})
    whole = (orders / "2024-01-02").read_bytes()
    for content, said in {
        whole[:-5]: "is no whole (Avro|ORC) file .*; write it again",
        DAMAGE[changes](whole): "cannot be read .*Nothing of it is planned yet",
    }.items():
        (orders / "2024-01-02").write_bytes(content)
        with pytest.raises(SourceBroken, match=f"orders/2024-01-02: {said}"):
            list(run_batches(pipeline, spark))
        assert len(Journal(Lake(pipeline.lake)).plans) == 1

    (orders / "2024-01-02").write_bytes(whole)
    list(run_batches(pipeline, spark))
    assert joined() == [(1, 9, None), (3, 7, "Kiel"), (4, 8, "Rome"), (5, 7, "Kiel")]
    assert list(run_batches(pipeline, spark)) == []
