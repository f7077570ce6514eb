"""Commits that happen once: each carries Delta's transaction identifier, so a rerun is skipped by Delta itself.

Writer options win over the session's, so appends may run beside a MERGE, which can only be told through the session.
"""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from delta.tables import DeltaMergeBuilder
from pyspark.sql import DataFrame, SparkSession

_PREFIX = "spark.databricks.delta."
_SESSION = threading.Lock()


@dataclass(frozen=True)
class Transaction:
    """Who commits, and for which batch."""

    app: str
    """Application of the transaction identifier: the lake's identity and the stage."""
    batch: int
    """Its version: the number of the batch."""
    metadata: Mapping[str, object]

    @property
    def user_metadata(self) -> str:
        """What `DESCRIBE HISTORY` shows beside the commit."""
        return json.dumps({"batch": self.batch, "app": self.app, **self.metadata}, sort_keys=True)


def append(
    rows: DataFrame, path: str, transaction: Transaction, properties: Mapping[str, str] | None = None
) -> None:
    """Append rows to a Delta table, once; `properties` are set when this makes the table."""
    writer = (
        rows.write.format("delta")
        .mode("append")
        .options(
            **{
                "txnAppId": transaction.app,
                "txnVersion": str(transaction.batch),
                "userMetadata": transaction.user_metadata,
                **(properties or {}),
            }
        )
    )
    writer.save(path)


def overwrite(rows: DataFrame, path: str, transaction: Transaction) -> None:
    """Replace the rows of a Delta table, once."""
    rows.write.format("delta").mode("overwrite").options(
        txnAppId=transaction.app,
        txnVersion=str(transaction.batch),
        userMetadata=transaction.user_metadata,
    ).save(path)


def merge(spark: SparkSession, builder: DeltaMergeBuilder, transaction: Transaction) -> None:
    """Run a MERGE, once. One at a time: only the session's settings can carry its identifier."""
    with _SESSION, _session_transaction(spark, transaction):
        builder.execute()


@contextmanager
def _session_transaction(spark: SparkSession, transaction: Transaction) -> Iterator[None]:
    settings = {
        "write.txnAppId": transaction.app,
        "write.txnVersion": str(transaction.batch),
        "commitInfo.userMetadata": transaction.user_metadata,
    }
    for name, value in settings.items():
        spark.conf.set(_PREFIX + name, value)
    try:
        yield
    finally:
        for name in settings:
            spark.conf.unset(_PREFIX + name)
