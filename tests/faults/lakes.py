"""Lakes that something happens to behind their back: which tables there are, how they are cut, what a run says."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from faults.shop import run
from lakejoin.orchestration.config import Pipeline
from lakejoin.storage.errors import LakeInconsistent

LOGS = (
    "tables/orders/changes", "tables/weather/changes", "streams/departures/records", "quarantine",
    "joins/left/subscription_log", "joins/left/response_log", "joins/inner/changelog", "joins/inner/joined",
    "joins/at_time/joined", "joins/star/next/response_log",
    "joins/totals/joined",
)  # fmt: skip
"""One table of each kind that a batch commits to."""
BASES = (
    "tables/orders/rows",
    "tables/weather/versions",
    "joins/left/subscription_store",
    "joins/star/next/subscription_store",
)
"""One of each kind that maintenance writes."""


def log_of(pipeline: Pipeline, table: str) -> Path:
    """The folder of a table's log."""
    return Path(pipeline.lake) / table / "_delta_log"


def last_commit(pipeline: Pipeline, table: str) -> Path:
    """The file of a table's last commit."""
    return newest_commit(Path(pipeline.lake) / table)


def newest_commit(table: Path) -> Path:
    """The same of a table at a place."""
    return max((table / "_delta_log").glob("*.json"))


def cut(file: Path, size: int) -> None:
    """Leave the first bytes of a file, as a power loss may, and no checksum beside it."""
    with file.open("r+") as stream:
        stream.truncate(size)
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


def forget_logs(spark: SparkSession) -> None:
    """Let Spark read all logs anew, as another process does; of each table it keeps some MiB for an hour."""
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()


def refused(pipeline: Pipeline, spark: SparkSession, table: str) -> str:
    """Run, and return the message of the error, which names the table and the way on."""
    with pytest.raises(LakeInconsistent) as found:
        run(pipeline, spark)
    message = str(found.value)
    assert message.startswith(f"{pipeline.lake}/{table}: "), message
    name = table.split("/")[1] if table.startswith("joins/") or table in BASES else None
    way = (
        "Restore it from a copy, or load the sources anew"
        if name is None
        else f"`lakejoin repair FILE {name}`"
    )
    assert way in message, message
    return message
