"""The recording `flights-cdc-tiny` as a pipeline in a folder of its own, all or some of its days."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data" / "flights-cdc-tiny"
DAYS = ("2013-03-01", "2013-03-02", "2013-03-03")
TABLES = ("flights", "planes")


def write_pipeline(folder: Path, days: Sequence[str] = DAYS) -> Path:
    """Write a configuration file and the files of these days; return the path of the configuration.

    Two tables are the demo's; of its joins only the left one is there, and Spark is tuned for a few rows.
    """
    document = yaml.safe_load((ROOT / "examples" / "flights" / "lakejoin.yaml").read_text("utf-8"))
    options = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"
    conf = {"spark.driver.extraJavaOptions": options, "spark.sql.shuffle.partitions": "2"}
    document |= {"name": "tiny", "spark": {"master": "local[2]", "conf": conf}}
    del document["streams"], document["groups"]
    document["tables"] = {table: document["tables"][table] for table in TABLES}
    document["joins"] = {"flights_with_planes": document["joins"]["flights_with_planes"]}
    for table in TABLES:
        document["tables"][table]["source"]["path"] = f"data/{table}/{{date}}.jsonl"
        (folder / "data" / table).mkdir(parents=True)
    for day in days:
        add_day(folder, day)
    path = folder / "lakejoin.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return path


def add_day(folder: Path, day: str) -> None:
    """Let the files of a day arrive, with the times that the recording's own have."""
    for table in TABLES:
        shutil.copy2(DATA / table / f"{day}.jsonl", folder / "data" / table)
