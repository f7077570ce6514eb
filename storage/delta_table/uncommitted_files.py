"""Writes rows into files that no commit names yet, unless an earlier run committed them.

The files can be read, and committed or left.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from lakejoin.storage.delta_log.transaction_id import Transaction
from lakejoin.storage.delta_table.private_transaction import DeltaTransaction
from lakejoin.storage.filesystem import spark_path
from lakejoin.storage.spark.hadoop import remove
from lakejoin.transforms.model.declaration import NONE, UNDECLARED, Declaration
from lakejoin.transforms.model.schemas import empty, named


@dataclass(frozen=True)
class Written:
    """Rows in files, to be committed or removed.

    Where a process ends before either, the next run writes others, and a vacuum of their table removes these.
    """

    rows: DataFrame
    """What was written."""
    delta: DeltaTransaction
    actions: Any
    """Delta's actions, for the commit."""

    def commit(self, transaction: Transaction) -> None:
        """Append the rows to their table."""
        self.delta.commit_write(self.actions, transaction.app, transaction.batch, transaction.user_metadata)

    def read(self) -> DataFrame:
        """The rows as they stand in the files of a table that there was not before, whose format is thus known."""
        spark, files = self.rows.sparkSession, [spark_path(file) for file in self._files()]
        if not files:
            return empty(spark, self.rows.schema)
        return self.delta.read_files(self.rows.schema, files).select(*map(named, self.rows.columns))

    def remove(self) -> None:
        """Remove the files, which were not committed: where no table comes of it, no vacuum would find them."""
        remove(self.rows.sparkSession, self._files())

    def _files(self) -> list[str]:
        path = self.delta.path.rstrip("/")
        return [f"{path}/{name}" for name in self.delta.names(self.actions)]


def write(
    rows: DataFrame, path: str, transaction: Transaction, properties: Mapping[str, str] = NONE,
    declared: Declaration = UNDECLARED,
) -> Written | None:  # fmt: skip
    """Put rows into files of a Delta table, which they may be the first of.

    Returns None where the table's log has the transaction: an earlier run made this commit, and it is not made again.
    `properties`, and what is `declared` beside, are those of a table that this makes.
    """
    delta = DeltaTransaction(rows.sparkSession, path)
    if not delta.exists:
        return Written(rows, delta, delta.write_first(rows, properties, declared))
    if delta.is_committed(transaction.app, transaction.batch):
        return None
    return Written(rows, delta, delta.write(rows))
