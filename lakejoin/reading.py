"""Reads the results of a pipeline as a finished batch left them, as Arrow, pandas, Polars or a Spark DataFrame.

Only `Results.spark` needs Spark. Everything else is read by `deltalake`, in this process and without Java.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from lakejoin.orchestration.config import Pipeline, pipeline_of
from lakejoin.orchestration.errors import WrongUsage, unknown
from lakejoin.orchestration.lake_state.published_snapshot import published_snapshot
from lakejoin.orchestration.lake_state.readable import check_readable
from lakejoin.orchestration.show.arrow_tables import arrow_tables
from lakejoin.orchestration.show.tables import find_view, views
from lakejoin.storage.errors import LakeInconsistent
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.state.arrow_rows import ArrowRows, WrongCondition
from lakejoin.storage.state.pinned_state import State
from lakejoin.transforms.model.schemas import is_internal, named

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["DeltaVersion", "Results", "read"]


@dataclass(frozen=True)
class DeltaVersion:
    """A version of a Delta table: what any reader of Delta has to be told."""

    path: str
    """Where the table is, a directory or a URI."""
    version: int


class Results:
    """The results of a pipeline as one finished batch left them, whatever is written meanwhile.

    All that is read from one of these belongs together. Its rows come in no order. Columns whose names begin with
    `_lj_` are internal, and there only where they are asked for.
    """

    def __init__(self, pipeline: Pipeline, batch: int | None = None) -> None:
        """Take the last finished batch, or the one with this number. Raises `WrongUsage` where there is none."""
        self._pipeline, self._lake = pipeline, Lake(pipeline.lake)
        self._plan = published_snapshot(Journal(self._lake), batch)
        self._tables = arrow_tables(pipeline)

    def __repr__(self) -> str:
        """Return pipeline and batch."""
        return f"<results of {self._pipeline.name} at batch {self.batch}>"

    @property
    def batch(self) -> int:
        """Number of the batch, from 1."""
        return self._plan.batch - 1

    @property
    def names(self) -> tuple[str, ...]:
        """What can be read without Spark: joins and groups, their changelogs and histories, tables and streams."""
        return tuple(self._tables)

    def at(self, batch: int) -> "Results":
        """Return the results as another batch left them. Raises `WrongUsage` for one that is not finished."""
        return Results(self._pipeline, batch)

    def arrow(
        self, name: str, columns: Sequence[str] | None = None, *, where: str | None = None, internal: bool = False
    ) -> pa.Table:  # fmt: skip
        """Return the rows of a result as a table of Arrow.

        name: one of `names`. columns: those that are wanted, in this order; by default all that are not internal.
        where: an SQL condition (of DataFusion) that the rows meet; names of columns with capitals are written as they
        are. internal: whether the internal columns are there, too.

        Raises `WrongUsage` for a name, column or condition that cannot be used, and for a state that is no longer
        kept; `ConfigurationChanged` for a result that was made with another configuration; `LakeUnusable` and
        `LakeInconsistent` for files that cannot be read.
        """
        rows = self._rows(name)
        wanted = self._columns(name, rows, columns, internal=internal)
        with self._explained(name, rows):
            return rows.table(self._lake, self._plan, wanted, where)

    def record_batches(
        self, name: str, columns: Sequence[str] | None = None, *, where: str | None = None, internal: bool = False
    ) -> pa.RecordBatchReader:  # fmt: skip
        """Return what reads the rows of a result piece by piece, for results that do not fit into memory.

        Arguments and errors are those of `arrow`; but what only shows while rows are read are pyarrow's own errors.
        """
        rows = self._rows(name)
        wanted = self._columns(name, rows, columns, internal=internal)
        with self._explained(name, rows):
            return rows.reader(self._lake, self._plan, wanted, where)

    def pandas(
        self, name: str, columns: Sequence[str] | None = None, *, where: str | None = None, internal: bool = False
    ) -> "pd.DataFrame":  # fmt: skip
        """Return the rows of a result as a frame of pandas, whose columns keep Arrow's types.

        So whole numbers beside nulls stay whole, and decimals exact. Arguments and errors are those of `arrow`.
        """
        from pandas import ArrowDtype

        return self.arrow(name, columns, where=where, internal=internal).to_pandas(types_mapper=ArrowDtype)

    def polars(
        self, name: str, columns: Sequence[str] | None = None, *, where: str | None = None, internal: bool = False
    ) -> "pl.DataFrame":  # fmt: skip
        """Return the rows of a result as a frame of Polars, in which a map is a list of keys and values.

        Arguments and errors are those of `arrow`. Raises `WrongUsage` where Polars is not installed.
        """
        try:
            from polars import DataFrame
        except ImportError as error:
            raise WrongUsage(
                "polars is not installed, and is needed for frames of Polars; `pip install 'lakejoin[polars]'`"
            ) from error
        return DataFrame(self.arrow(name, columns, where=where, internal=internal))

    def spark(self, name: str, spark: "SparkSession", *, internal: bool = False) -> "DataFrame":
        """Return the rows of a result as a DataFrame of a session that has Delta Lake.

        name: also those of `lakejoin show` that `names` has not, such as `J.response_log`. Raises the errors of
        `arrow`, and those of Spark once it reads.
        """
        opened = find_view(self._pipeline, name)
        self._check(name)
        rows = opened(State(spark, self._lake, self._plan)).rows
        return rows.select(*[named(column) for column in rows.columns if internal or not is_internal(column)])

    def table(self, name: str) -> DeltaVersion:
        """Return which version of which Delta table a result is, for other readers.

        Raises `WrongUsage` for what is no table of its own, as the current rows of a declared table, and for a result
        that holds nothing yet; else the errors of `arrow`.
        """
        rows = self._rows(name)
        if rows.is_computed:
            raise WrongUsage(
                f"{name} is no table of its own: its rows are computed from {' and '.join(rows.tables)}; use arrow, "
                "pandas, polars or spark"
            )
        (table,) = rows.tables
        if table not in self._plan.versions:
            raise WrongUsage(f"{name} has no table as of batch {self.batch}: no batch has written it yet")
        return DeltaVersion(self._lake.path(table), self._plan.versions[table])

    @contextmanager
    def _explained(self, name: str, rows: ArrowRows) -> Iterator[None]:
        try:
            yield
        except WrongCondition as error:
            raise WrongUsage(f"{name}: {error}; columns: {', '.join(rows.schema.names)}") from error
        except LakeInconsistent:
            self._check(name)  # a later batch may have ended what this one left while it was read
            raise

    def _rows(self, name: str) -> ArrowRows:
        if name not in self._tables:
            if name in (known := views(self._pipeline)):
                raise WrongUsage(f"{name} can be read by Spark only: .spark({name!r}, session)")
            raise unknown("result", name, [*self._tables, *known.keys() - self._tables.keys()])
        self._check(name)
        return self._tables[name]

    def _check(self, name: str) -> None:
        journal = Journal(self._lake)
        kept = self.batch < len(journal.published)
        check_readable(self._pipeline, journal, self._plan, name, kept=kept)

    @staticmethod
    def _columns(name: str, rows: ArrowRows, columns: Sequence[str] | None, *, internal: bool) -> list[str]:
        known = rows.schema.names
        if columns is None:
            return [column for column in known if internal or not is_internal(column)]
        for column in columns:
            if column not in known:
                raise unknown(f"column of {name}", column, known)
        return list(columns)


def read(pipeline: str | os.PathLike[str] | Pipeline) -> Results:
    """Return the results of a pipeline as its last finished batch left them.

    pipeline: the configuration file, or what `lakejoin.orchestration.config.load` made of it. Only the lake is read;
    the sources need not be there.

    Raises `ConfigurationError` for a file with mistakes, `WrongUsage` for a lake in which no batch is finished, and
    `LakeUnusable` or `LakeInconsistent` for one that cannot be read.
    """
    return Results(pipeline_of(pipeline))
