"""Commits that happen once: each carries Delta's transaction identifier, and a rerun finds it and does nothing.

What stands in a commit wins over the session's settings, so appends may run beside a MERGE, which can only be told
through the session.
"""

import json
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType

from delta.tables import DeltaMergeBuilder, DeltaTable
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from storage.delta import DeltaTransaction
from storage.errors import LakeBusy
from transforms.schemas import BATCH

_PREFIX = "spark.databricks.delta."
_SESSION = threading.Lock()
_NONE: Mapping[str, str] = MappingProxyType({})


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
    rows: DataFrame, path: str, transaction: Transaction, properties: Mapping[str, str] = _NONE
) -> None:
    """Append rows to a Delta table, once; `properties` are set when this makes the table."""
    delta = DeltaTransaction(rows.sparkSession, path)
    if not delta.exists:
        _save(rows, "append", path, transaction, properties)
    elif not delta.is_committed(transaction.app, transaction.batch):
        written = delta.write(rows)
        delta.commit_write(written, transaction.app, transaction.batch, transaction.user_metadata)


def replace(  # noqa: PLR0913
    new: DataFrame, count: int, keys: DataFrame, key: StructType, path: str, transaction: Transaction,
    *, small: bool,
) -> None:  # fmt: skip
    """Put new rows in the place of those that have these keys, once and in one commit.

    `new`: `count` rows. `keys`: columns of `key`; those of new rows and of rows that only end. `small`: they fit on
    every task.
    """
    delta = DeltaTransaction(new.sparkSession, path)
    if delta.is_committed(transaction.app, transaction.batch):
        return
    replaced = delta.replace(key, F.broadcast(keys) if small else keys)
    written = delta.write(new)
    with _SESSION, _settings(new.sparkSession, {"commitInfo.userMetadata": transaction.user_metadata}):
        delta.commit_merge(replaced, written, transaction.app, transaction.batch, count)


def rewrite(
    spark: SparkSession, path: str, names: Collection[str], arrange: Callable[[DataFrame], DataFrame],
    transaction: Transaction,
) -> None:  # fmt: skip
    """Put the rows that some files of a table hold into new files, in one commit that changes no row.

    `names`: paths below the table. `arrange`: says how many files, and in which order. Raises `LakeBusy` where
    another commit replaced one of these files meanwhile.
    """
    delta = DeltaTransaction(spark, path)
    rewritten = delta.rewrite(names, arrange)
    try:
        with _SESSION, _settings(spark, {"commitInfo.userMetadata": transaction.user_metadata}):
            delta.commit_rewrite(rewritten, transaction.app, transaction.batch)
    except (Py4JJavaError, PySparkException) as error:
        if "DELTA_CONCURRENT" not in str(error):
            raise
        raise LakeBusy(
            f"{path}: another commit replaced files that were being written anew; it stands, and nothing else was "
            "changed. Run maintenance again when no batch runs."
        ) from error


def overwrite(
    rows: DataFrame, path: str, transaction: Transaction, properties: Mapping[str, str] = _NONE
) -> None:
    """Replace the rows of a Delta table and its columns, once; `properties` are set when this makes the table."""
    _save(rows, "overwrite", path, transaction, {**properties, "overwriteSchema": "true"})


def remove_batch(spark: SparkSession, path: str, batch: int) -> None:
    """Remove the rows that a batch put into a log; nothing where there are none."""
    DeltaTable.forPath(spark, path).delete(F.col(BATCH) == batch)


def merge(spark: SparkSession, builder: DeltaMergeBuilder, transaction: Transaction) -> None:
    """Run a MERGE, once. One at a time: only the session's settings can carry its identifier."""
    settings = {
        "write.txnAppId": transaction.app,
        "write.txnVersion": str(transaction.batch),
        "commitInfo.userMetadata": transaction.user_metadata,
    }
    with _SESSION, _settings(spark, settings):
        builder.execute()


def _save(
    rows: DataFrame, mode: str, path: str, transaction: Transaction, properties: Mapping[str, str]
) -> None:
    stated = {
        "txnAppId": transaction.app,
        "txnVersion": str(transaction.batch),
        "userMetadata": transaction.user_metadata,
    }
    rows.write.format("delta").mode(mode).options(**stated, **properties).save(path)


@contextmanager
def _settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    for name, value in settings.items():
        spark.conf.set(_PREFIX + name, value)
    try:
        yield
    finally:
        for name in settings:
            spark.conf.unset(_PREFIX + name)
