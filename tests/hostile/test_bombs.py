"""Small files that become large in memory: refused before a batch is planned, and nothing is worse afterwards."""

import gzip
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from pyspark.sql import DataFrame, SparkSession

from faults.shop import make_pipeline, run
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.lake_state.published_snapshot import published_snapshot
from lakejoin.orchestration.planning.pending_input import pending_groups
from lakejoin.storage.errors import SourceTooLarge
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.state.pinned_state import State

TEXT = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {format: FORMAT, path: orders, limits: {memory: 2 MB, LIMITS}}
    columns: {id: bigint, name: string}
    key: [id]
"""


def pipeline_of(folder: Path, form: str, limits: str = "ratio: 1000") -> Pipeline:
    """Return a pipeline over the files of one format in the folder `orders`."""
    return make_pipeline(folder, TEXT.replace("FORMAT", form).replace("LIMITS", limits))


def rows_of(pipeline: Pipeline, spark: SparkSession) -> DataFrame:
    """Return what the table has: id and name."""
    lake = Lake(pipeline.lake)
    state = State(spark, lake, published_snapshot(Journal(lake)))
    return state.all_rows(pipeline.tables["orders"].spec).select("id", "name")


def write_rows(path: Path, names: pa.Array) -> None:
    """Write a Parquet file with one insert for each name."""
    rows = {"op": ["c"] * len(names), "id": range(len(names)), "name": names}
    options = {"dictionary_pagesize_limit": 1 << 30, "write_statistics": False}
    pq.write_table(pa.table(rows), path, compression="zstd", **options)


def dictionary_bomb(path: Path) -> None:
    """Write some kilobytes of Parquet that stand for 120 MB of text."""
    places = pa.array([0] * 300, pa.int32())
    write_rows(path, pa.DictionaryArray.from_arrays(places, pa.array(["x" * 400_000])))


def bytes_bomb(path: Path) -> None:
    """Write some kilobytes of ORC that stand for 120 MB."""
    rows = {"op": ["c"] * 300, "id": range(300), "name": [b"x" * 400_000] * 300}
    orc.write_table(pa.table(rows), path, compression="zstd")


def large_block(path: Path) -> None:
    """Write a record of 40 MB in Avro, packed."""
    fields = [
        {"name": name, "type": kind} for name, kind in (("op", "string"), ("id", "long"), ("name", "string"))
    ]
    with path.open("wb") as file:
        row = {"op": "c", "id": 1, "name": "x" * 40_000_000}
        fastavro.writer(file, {"type": "record", "name": "row", "fields": fields}, [row], codec="deflate")


def long_line(path: Path) -> None:
    """Write a line of 40 MB, in as many kilobytes."""
    path.write_bytes(gzip.compress(b'{"op":"c","id":1,"name":"' + b"x" * 40_000_000 + b'"}\n'))


def long_record(path: Path) -> None:
    """Write a record of CSV of 40 MB, in lines of 100 bytes."""
    path.write_bytes(gzip.compress(b'op,id,name\nc,1,"' + (b"x" * 99 + b"\n") * 400_000 + b'"\n'))


BOMBS: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "bomb.parquet": ("parquet", dictionary_bomb, r"to over 120,0[0-9,]+; expected at most 1,000 .*limits.ratio"),
    "bomb.orc": ("orc", bytes_bomb, r"to over 120,0[0-9,]+; expected at most 1,000 .*limits.ratio"),
    "bomb.avro": ("avro", large_block, r"block 1, unpacked, has at least .* 2,000,000 \(source.limits.memory"),
    "bomb.jsonl.gz": ("jsonl", long_line, r"line 1 has at least [0-9,]+ bytes, .* 2,000,000 \(source.limits.memory"),
    "bomb.csv.gz": ("csv", long_record, r"record from line 2 on, .* has at least .* 2,000,000 \(source.limits.memory"),
}  # fmt: skip


@pytest.mark.bad_input(46)
@pytest.mark.parametrize("name", BOMBS)
def test_bomb_is_refused_before_the_plan_as_often_as_it_is_met(tmp_path: Path, name: str) -> None:
    """Reported: Parquet of 3,868 bytes, 300 rows, 18 GB of text by a dictionary; each run planned it anew and failed.

    The message has file, measure, limit and key. The lake is not even made, and the next look finds what it found.
    """
    form, write, said = BOMBS[name]
    pipeline = pipeline_of(tmp_path, form)
    (tmp_path / "orders").mkdir()
    write(tmp_path / "orders" / name)

    for _ in range(2):
        with pytest.raises(SourceTooLarge, match=rf"table orders: .*/orders/{name}: .*{said}"):
            pending_groups(pipeline, Journal(Lake(pipeline.lake)), now=datetime.now(UTC), spark=None)
        assert not Path(pipeline.lake).exists()


@pytest.mark.spark
@pytest.mark.bad_input(46)
def test_run_after_a_refusal_goes_on_as_if_there_had_been_none(tmp_path: Path, spark: SparkSession) -> None:
    """Reported, as above: without the file the others are read, and with the limit raised the file itself."""
    bomb = tmp_path / "orders" / "bomb.parquet"
    bomb.parent.mkdir()
    write_rows(bomb.with_name("a.parquet"), pa.array(["a", "b"]))
    dictionary_bomb(bomb)
    pipeline = pipeline_of(tmp_path, "parquet")
    for _ in range(2):
        with pytest.raises(SourceTooLarge, match=r"bomb\.parquet"):
            run(pipeline, spark)

    bomb.rename(tmp_path / "bomb.parquet")
    run(pipeline, spark)
    assert sorted(rows_of(pipeline, spark).collect()) == [(0, "a"), (1, "b")]

    (tmp_path / "bomb.parquet").rename(bomb)
    run(pipeline_of(tmp_path, "parquet", "ratio: 1000000"), spark)
    assert rows_of(pipeline, spark).selectExpr(
        "count(*)", "min(length(name))", "max(length(name))"
    ).first() == (
        300,
        400_000,
        400_000,
    )
