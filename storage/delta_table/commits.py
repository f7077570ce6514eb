"""Makes each commit to a Delta table exactly once: it carries a transaction identifier, by which a rerun finds it.

An identifier in the commit itself wins over the session's settings, through which alone a real MERGE can be given one
(`spark.lakejoin.merge`). So appends may run beside it.
"""

import logging
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from delta import tables
from delta.tables import DeltaMergeBuilder
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JJavaError
from pyspark import inheritable_thread_target
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from lakejoin.storage.delta_log.open_table import has_committed
from lakejoin.storage.delta_log.transaction_id import Settled, Transaction
from lakejoin.storage.delta_table.file_pruning import Count, ignored
from lakejoin.storage.delta_table.private_transaction import DeltaTransaction
from lakejoin.storage.delta_table.uncommitted_files import Written, write
from lakejoin.storage.errors import LakeBusy, reason_of
from lakejoin.storage.filesystem import quoted_uri
from lakejoin.transforms.model.declaration import NONE, UNDECLARED, Declaration
from lakejoin.transforms.model.keys import Keys
from lakejoin.transforms.model.printable_text import printable
from lakejoin.transforms.model.schemas import BATCH

_PREFIX = "spark.databricks.delta."
_SESSION = threading.Lock()
_CONFLICTS = ("DELTA_CONCURRENT", "DELTA_METADATA_CHANGED", "DELTA_PROTOCOL_CHANGED")
"""What the names of Delta's errors about conflicting commits begin with."""
_ATTEMPTS = 3

logger = logging.getLogger(__name__)


def begin(spark: SparkSession, path: str) -> DeltaTransaction:
    """Begin a commit with what takes a while and needs no rows: Delta's look at the table."""
    begun = DeltaTransaction(spark, path)
    _ = begun.files
    return begun


def append(  # noqa: PLR0913
    rows: DataFrame, path: str, transaction: Transaction, properties: Mapping[str, str] = NONE,
    *, ready: Callable[[], bool] = lambda: True, first: Written | None = None, declared: Declaration = UNDECLARED,
) -> None:  # fmt: skip
    """Append rows to a Delta table, once; it has `properties`, and what is `declared`, when this makes the table.

    `ready`: asked once the rows are in files, may wait, and says whether there is anything to commit. `first`: of
    `write`, these rows in files, for the first attempt.
    """
    prepared = [first] if first else []

    def attempt() -> None:
        written = prepared.pop() if prepared else write(rows, path, transaction, properties, declared)
        if written is not None and ready():
            written.commit(transaction)

    _once(path, transaction, attempt)


def replace(  # noqa: PLR0913
    new: DataFrame, keys: Keys, key: StructType, path: str, transaction: Transaction,
    *, ready: Callable[[], Settled | None], begun: DeltaTransaction | None = None,
    count: Count = ignored, unless: StructField | None = None,
) -> None:  # fmt: skip
    """Put new rows in the place of those that have these keys, once and in one commit.

    `keys`: of the rows in `new`, and of rows that only end; `key`: their columns. `ready`: asked once the rows that end
    are found and the new ones are in files; returns when the commits are made that this one must not precede, and
    `None` where there is nothing to commit. `begun`: of `begin`, for the first attempt. `count`: told how many of the
    table's files are looked through. `unless`: rows that have a value in this column stay.
    """
    prepared = [begun] if begun else []

    def attempt() -> None:
        delta = prepared.pop() if prepared else DeltaTransaction(new.sparkSession, path)
        if delta.is_committed(transaction.app, transaction.batch):
            return
        with ThreadPoolExecutor(1) as beside:
            writing = beside.submit(inheritable_thread_target(new.sparkSession)(delta.write), new)
            replaced = delta.replace(key, keys, count, unless)
            written = writing.result()
        settled = ready()
        if settled is None:
            return
        stated = transaction.stating(settled.metadata)
        with _SESSION, _settings(new.sparkSession, {"commitInfo.userMetadata": stated.user_metadata}):
            delta.commit_replaced(replaced, written, transaction.app, transaction.batch, settled.rows)

    _once(path, transaction, attempt)


def _once(path: str, transaction: Transaction, attempt: Callable[[], None]) -> None:
    """Make a commit; where it fails, the table's log says whether it was made nevertheless.

    Its answer may have been lost, or another run may have made the same one, from the same plan. A conflict with
    somebody else's commit, an OPTIMIZE by hand for one, is met by another attempt. Raises `LakeBusy` after the last.
    """
    for number in range(1, _ATTEMPTS + 1):
        try:
            attempt()
        except (Py4JJavaError, PySparkException) as error:
            if _is_made(path, transaction):
                logger.warning(
                    "%s: a commit failed, but was made: %s", printable(path), printable(reason_of(error))
                )
                return
            if not _is_conflict(error):
                raise
            if number == _ATTEMPTS:
                raise LakeBusy(
                    f"{path}: other commits came in between {_ATTEMPTS} times; nothing of this one was kept. End "
                    "whatever else writes the table, then run again."
                ) from error
        else:
            return


def _is_conflict(error: Exception) -> bool:
    text = str(error)
    return any(name in text for name in _CONFLICTS)


def _is_made(path: str, transaction: Transaction) -> bool:
    try:
        return has_committed(DeltaTable(quoted_uri(path)), transaction.app, transaction.batch)
    except (DeltaError, OSError):
        return False  # what failed before is the error to report


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
        if not _is_conflict(error):
            raise
        raise LakeBusy(
            f"{path}: another commit replaced files that were being written anew; it stands, and nothing else was "
            "changed. Run maintenance again when no batch runs."
        ) from error


def overwrite(
    rows: DataFrame, path: str, transaction: Transaction, properties: Mapping[str, str] = NONE,
    declared: Declaration | None = None,
) -> None:  # fmt: skip
    """Replace the rows of a Delta table and its columns, once; `properties` are set when this makes the table.

    `declared`: what it has beside; None leaves the partitions of a table that is there as they are.
    """
    stated = {
        "overwriteSchema": "true",
        "txnAppId": transaction.app,
        "txnVersion": str(transaction.batch),
        "userMetadata": transaction.user_metadata,
    }

    def attempt() -> None:
        delta = DeltaTransaction(rows.sparkSession, path)
        if delta.exists:
            parts = delta.partition_columns if declared is None else declared.partition_by
            rows.write.format("delta").mode("overwrite").options(**stated).partitionBy(*parts).save(path)
        else:
            actions = delta.write_first(rows, properties, declared or UNDECLARED)
            Written(rows, delta, actions).commit(transaction)

    _once(path, transaction, attempt)


def remove_batch(spark: SparkSession, path: str, transaction: Transaction) -> None:
    """Remove the rows that the batch of the transaction put into a log; nothing where there are none."""
    delete_rows(spark, path, F.col(BATCH) == transaction.batch, transaction)


def delete_rows(spark: SparkSession, path: str, which: Column, transaction: Transaction) -> None:
    """Delete rows that a condition holds for."""
    table = tables.DeltaTable.forPath(spark, path)
    with _SESSION, _settings(spark, _identified(transaction)):
        table.delete(which)


def update_rows(
    spark: SparkSession, path: str, which: Column, values: Mapping[str, Column], transaction: Transaction
) -> None:
    """Change columns of the rows that a condition holds for."""
    table = tables.DeltaTable.forPath(spark, path)
    with _SESSION, _settings(spark, _identified(transaction)):
        table.update(which, dict(values))


def merge(spark: SparkSession, builder: DeltaMergeBuilder, path: str, transaction: Transaction) -> None:
    """Run a MERGE, once. One at a time: only the session's settings can carry its identifier."""
    settings = _identified(transaction)

    def attempt() -> None:
        with _SESSION, _settings(spark, settings):
            builder.execute()

    _once(path, transaction, attempt)


def _identified(transaction: Transaction) -> dict[str, str]:
    """Settings of a session by which Delta's commands carry a transaction identifier."""
    return {
        "write.txnAppId": transaction.app,
        "write.txnVersion": str(transaction.batch),
        "commitInfo.userMetadata": transaction.user_metadata,
    }


@contextmanager
def _settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    for name, value in settings.items():
        spark.conf.set(_PREFIX + name, value)
    try:
        yield
    finally:
        for name in settings:
            spark.conf.unset(_PREFIX + name)
