"""The page about files as sources works as it stands: its configuration, over files as it describes them."""

import gzip
import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from pyspark.sql import SparkSession

from orchestration.config import load, load_text
from orchestration.runs.run import run_batches
from storage.lake.layout import QUARANTINE, Lake, joined_of

PAGE = Path(__file__).parents[2] / "docs" / "files.md"
TEXT = PAGE.read_text("utf-8")
PIPELINE = re.findall(r"^```yaml\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)[0]


def test_options_of_csv_can_be_pasted() -> None:
    """Each of the table is what a source takes."""
    options = re.findall(r"\| `(\{.*\})` \|", TEXT[TEXT.index("\n## CSV") :])
    assert len(options) == 5
    for option in options:
        source = f"{{format: csv, path: x, csv: {option}}}"
        text = f"name: x\nlake: ./x\ntables:\n  t: {{source: {source}, columns: {{id: int}}, key: [id]}}\n"
        csv = load_text(text, "x.yaml").tables["t"].source.csv
        assert csv is not None
        assert set(yaml.safe_load(option)) <= csv.model_fields_set


@pytest.mark.spark
@pytest.mark.slow
def test_pipeline_of_the_page_runs(spark: SparkSession, tmp_path: Path) -> None:
    """JSON lines in the order of their numbers, CSV of a spreadsheet, Parquet hour by hour."""
    stations = {1: "Bonn", 9: "Köln", 10: "Aachen"}
    prices = 'op;article;name;price;valid_from\r\nu;7;Käse, "jung";1,50;9.1.2013\r\nu;8;n/a;n/a;9.1.2013\r\n'
    sales = {"op": ["c", "c"], "sale": [1, 2], "article": [7, 8], "station": ["K", "K"], "pieces": [3, 4]}
    files = {
        **{f"stations/{n}.jsonl": json.dumps({"op": "u", "station": "K", "city": c}) for n, c in stations.items()},
        "prices/year=2012/month=12/31.csv.gz": "torn",
        "prices/year=2013/month=1/9.csv.gz": prices,
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        content = text.encode("cp1252")
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else text.encode())
    hour = tmp_path / "sales" / "date=2013-01-09" / "hour=9"
    hour.mkdir(parents=True)
    pq.write_table(pa.table(sales), hour / "a.parquet")
    (tmp_path / "warehouse.yaml").write_text(PIPELINE)
    pipeline = load(tmp_path / "warehouse.yaml")

    list(run_batches(pipeline, spark))

    lake = Lake(pipeline.lake)
    assert not Path(lake.path(QUARANTINE)).exists()
    joined = spark.read.format("delta").load(lake.path(joined_of("sales_with_stations")))
    rows = {row["sale"]: row.asDict() for row in joined.collect()}
    assert {row["right_city"] for row in rows.values()} == {"Aachen"}
    assert [(rows[n]["right_name"], str(rows[n]["right_price"])) for n in (1, 2)] == [
        ('Käse, "jung"', "1.50"),
        (None, "None"),
    ]
