"""A topic is compacted while a batch that reads it is cut off: what was committed has records that are gone now."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from faults.crashing import Crash, commits
from faults.shop import make_pipeline, run, write_lines
from lakejoin.storage.errors import SourceChanged
from lakejoin.storage.sources.formats.jsonl import Jsonl
from lakejoin.storage.sources.formats.known_formats import FORMATS
from lakejoin.storage.sources.formats.source_format import Ranges, SourceSpec

TEXT = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {format: jsonl, path: orders.jsonl}
    columns: {id: bigint, customer: bigint}
    key: [id]
"""


class Gapped(Jsonl):
    """Files that may lose lines, as topics lose records; nobody can tell by looking at them."""

    is_dense = False

    def check_same(self, source: SourceSpec, parts: Ranges, *, thoroughly: bool) -> None:
        """Find nothing."""


@pytest.mark.spark
def test_batch_that_has_committed_more_than_there_is_now_is_told(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch that is run again with the same records ends; with fewer it stops, however often it is tried."""
    monkeypatch.setitem(FORMATS, "jsonl", Gapped())
    pipeline = make_pipeline(tmp_path, TEXT)
    rows = [{"op": "c", "id": number, "customer": number} for number in range(3)]
    write_lines(tmp_path / "orders.jsonl", rows)
    with pytest.raises(Crash), commits("tables/orders/changes", "after"):
        run(pipeline, spark)

    write_lines(tmp_path / "orders.jsonl", rows[1:])
    with pytest.raises(
        SourceChanged, match=r"2 records of .*orders.jsonl are to be kept, expected 3, as batch 1"
    ):
        run(pipeline, spark)
    write_lines(tmp_path / "orders.jsonl", rows)

    assert run(pipeline, spark) == 1
