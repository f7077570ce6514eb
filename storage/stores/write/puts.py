"""Writes a store: each put is one commit that appends, a compaction one that replaces what was superseded.

Only Spark writes, through Delta's transactions; what a put has to know before it (the number of the last one, the
newest time) stands in Delta's log.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_
from typing import Any

from pyspark.errors import PySparkTypeError, PySparkValueError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from lakejoin.storage.delta_log.transaction_id import Transaction
from lakejoin.storage.delta_table.private_transaction import DeltaTransaction
from lakejoin.storage.errors import LakeBusy
from lakejoin.storage.spark.session import changed_settings
from lakejoin.storage.stores.errors import WrongKey
from lakejoin.storage.stores.scan.delta_table import TableFiles
from lakejoin.storage.stores.write.creation import INTERNAL
from lakejoin.storage.stores.write.frame_columns import check_columns, check_order
from lakejoin.storage.stores.write.layout import DELETED, OBSERVED, PLACE, PUT, Layout
from lakejoin.storage.stores.write.put_errors import blamed, check_session, observed_time, others_put
from lakejoin.transforms.model.schemas import named

SETTINGS = {"parquet.block.size": str(4 * 1024 * 1024), "spark.sql.parquet.compression.codec": "zstd"}
"""Small row groups: one is what is read at the least."""


class Writer:
    """Puts to the table of one store."""

    def __init__(self, spark: SparkSession, table: TableFiles, layout: Layout) -> None:
        self.spark, self._table, self.layout = spark, table, layout

    @property
    def path(self) -> str:
        """Where the table is."""
        return self._table.path

    @property
    def last_put(self) -> int:
        """Number of the newest put; 0 before the first one."""
        return self._last(f"{self._identity}/put")

    def put_rows(self, rows: Sequence[tuple[Any, ...]], after: int | None = None) -> None:
        """Append rows: values of the columns that a put gives, in their order; the last one of a place counts.

        `after`: the put that this one must follow; raises `LakeBusy` where there was another one since.
        """
        schema = StructType([*self._given_schema(), StructField(PLACE, LongType())])
        numbered = [(*row, number) for number, row in enumerate(rows)]
        try:
            frame = self.spark.createDataFrame(numbered, schema)
        except (PySparkTypeError, PySparkValueError) as error:
            raise WrongKey(
                f"{self.path}: expected values of the store's types, found otherwise: {error}; nothing was put"
            ) from error
        self._append(frame.coalesce(1), sort=False, after=after)

    def put_frame(self, rows: DataFrame, order: str | None = None) -> None:
        """Append rows of a frame that has the columns a put gives; of a place the last one by `order` counts.

        `order`: a column of whole numbers or timestamps; None: the order that the frame has. A row whose value
        columns are all null is a delete. Raises `WrongKey` where a column is missing, or is of a type that would make
        other values of its own.
        """
        self._append(self.numbered(rows, order), sort=True)

    def numbered(self, rows: DataFrame, order: str | None) -> DataFrame:
        """The columns that a put gives, as the table has them, and what orders them. Raises `WrongKey`."""
        wanted = self._given_schema()
        check_columns(self.path, rows, wanted)
        if order is not None:
            check_order(self.path, rows, order)
        if order is None:
            place = F.monotonically_increasing_id()
        else:
            is_time = isinstance(rows.schema[order].dataType, TimestampType)
            place = F.unix_micros(named(order)) if is_time else named(order).cast("bigint")
        given = [named(f.name).cast(f.dataType).alias(f.name) for f in wanted]
        return rows.select(*given, place.alias(PLACE))

    def _append(self, rows: DataFrame, *, sort: bool, after: int | None = None) -> None:
        """Commit rows of the columns that a put gives and `PLACE`."""
        app, layout = f"{self._identity}/put", self.layout
        check_session(self.path, self.spark)
        delta = DeltaTransaction(self.spark, self.path)
        number = self.last_put + 1
        if after is not None and number != after + 1:
            raise LakeBusy(others_put(self.path))
        absent = [named(name).isNull() for name in layout.value]
        complete = rows.withColumns(
            {
                DELETED: reduce(and_, absent),
                PUT: F.lit(number).cast("bigint"),
                OBSERVED: observed_time(layout),
            }
        )
        if layout.duplicates:
            complete = complete.where(~named(DELETED))
        columns = [*layout.key, *layout.times, *INTERNAL.names, *layout.value]
        order = [named(name) for name in (*layout.key, *layout.times, PLACE)]
        arranged = complete.orderBy(*order) if sort else complete.sortWithinPartitions(*order)
        with changed_settings(self.spark, SETTINGS), blamed(self.path, self.layout):
            if delta.is_committed(app, number):
                raise LakeBusy(others_put(self.path))
            written = delta.write(arranged.select(*map(named, columns)))
            transaction = Transaction(app, number, {})
            delta.commit_write(written, app, number, transaction.user_metadata)

    def compact(self, keep: Callable[[DataFrame], DataFrame], last: int, files: int) -> None:
        """Put the rows that are to be kept in the place of all that were put up to `last`, in so many files.

        `keep`: says which of the rows. What others put meanwhile stays as it is.
        """
        check_session(self.path, self.spark)
        app = f"{self._identity}/compact"
        kept = keep(self.spark.read.format("delta").load(self.path).where(named(PUT) <= last))
        order = [named(name) for name in (*self.layout.key, *self.layout.times, PUT, PLACE)]
        arranged = kept.repartitionByRange(files, *order).sortWithinPartitions(*order)
        stated = {"txnAppId": app, "txnVersion": str(self._last(app) + 1), "replaceWhere": f"{PUT} <= {last}"}
        with changed_settings(self.spark, SETTINGS), blamed(self.path, self.layout):
            arranged.write.format("delta").mode("overwrite").options(**stated).save(self.path)

    @property
    def _identity(self) -> str:
        return self._table.identity

    def _last(self, app: str) -> int:
        return self._table.transaction(app) or 0

    def _given_schema(self) -> StructType:
        fields = {field.name: field for field in self._table.spark_schema}
        return StructType([StructField(name, fields[name].dataType) for name in self.layout.given])
