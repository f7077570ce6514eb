"""Runs Delta's own transactions through the classes behind its public API.

What the public API does with many Spark jobs takes few here. An append need not compute the table's whole state to
learn whether its transaction identifier was used before. Rows are replaced by one scan of their keys, deletion vectors
and new files in one commit, where MERGE joins and rewrites (docs/decisions/0005).

These classes are private: only this module uses them, and only with the minor version of delta-spark it was tested
with. Tests compare its tables with those that MERGE makes. Deletion vectors: Delta protocol, "Deletion Vectors".
"""
# ruff: noqa: SLF001 - the gateway to the JVM is a private part of PySpark

from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from lakejoin.storage.delta_log.open_table import has_committed, opened
from lakejoin.storage.delta_table.direct_scan import data_paths
from lakejoin.storage.delta_table.file_pruning import Count, Few, ignored
from lakejoin.storage.delta_table.footer_statistics import (
    INDEXED,
    STATISTICS,
    Footers,
    columns_but_texts,
    with_texts,
)
from lakejoin.storage.errors import LakeInconsistent
from lakejoin.storage.filesystem import spark_path
from lakejoin.transforms.model.declaration import UNDECLARED, Declaration
from lakejoin.transforms.model.keys import Keys, restrict
from lakejoin.transforms.model.schemas import named

FILE, ROW = "_lj_file", "_lj_row"
"""Where a row stands in a table: the URI of its file, and its number in it from 0."""
_COLLECTS = "spark.databricks.delta.stats.collect"


@dataclass(frozen=True)
class Replaced:
    """What marking rows as deleted came to."""

    actions: Any
    """Delta's actions, for the commit."""
    rows: int
    """How many rows had not been deleted before."""


@dataclass(frozen=True)
class Rewritten:
    """What writing files anew came to."""

    actions: Any
    """Delta's actions, for the commit."""
    ended: int
    """How many files it ends,"""
    added: int
    """and how many come instead."""


class DeltaTransaction:
    """One optimistic transaction on a table, which sees it as it was when this began."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark, self.path = spark, path
        jvm: Any = spark._jvm
        self._jvm = jvm
        self._delta = jvm.org.apache.spark.sql.delta
        self._none = jvm.scala.Option.empty()
        self._nil = _module(jvm.scala.collection.immutable, "Nil")
        self._log = self._delta.DeltaLog.forTable(spark._jsparkSession, path)
        self._transaction = self._log.startTransaction(self._none, self._none)

    @property
    def exists(self) -> bool:
        """Whether there is a table yet."""
        return int(self._transaction.snapshot().version()) >= 0

    @cached_property
    def files(self) -> Any:
        """All files of the table with their statistics; the commit is taken to have read everything.

        Delta states the files of a small table beside each version (Delta protocol, "Version Checksum File"); those of
        a large one, and of a version by another writer, it computes.
        """
        # not `filterFiles`: its files have no statistics but their rows, and readers would have nothing to skip by
        self._transaction.readWholeTable()
        snapshot = self._transaction.snapshot()
        checksum = snapshot.checksumOpt()
        stated = checksum.get().allFiles() if checksum.isDefined() else self._none
        if stated.isDefined():
            return stated.get()
        # a thread that Python began has no session, and Delta may ask for it when it reads a checkpoint
        self._jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(self._spark._jsparkSession)
        computed = snapshot.allFiles().collectAsList()
        return self._jvm.scala.jdk.javaapi.CollectionConverters.asScala(computed).toSeq()

    def is_committed(self, app: str, version: int) -> bool:
        """Whether this transaction identifier was committed. If that happens after this look, the commit fails."""
        self._transaction.readTxn().addOne(app)
        return has_committed(opened(self.path), app, version)

    @property
    def partition_columns(self) -> list[str]:
        """The columns by whose values the table has its folders; its files need not hold them."""
        return list(self._items(self._transaction.metadata().partitionColumns()))

    def read_files(self, schema: StructType, paths: Collection[str]) -> DataFrame:
        """Read columns of files of the table by their names, those of their folders among them."""
        reader = self._spark.read.schema(schema)
        if self.partition_columns:
            reader = reader.option("basePath", spark_path(self.path))
        return reader.parquet(*paths)

    def write_first(
        self, rows: DataFrame, properties: Mapping[str, str], declared: Declaration = UNDECLARED
    ) -> Any:
        """Write the first rows of a table that there is not yet; the commit makes it, with these properties.

        Its columns are those of the rows, and any may be null. What bounds texts have, the files' footers tell, if the
        files hold all columns. `declared`: what it has beside, but for what `align` gives it.
        """
        self._create(rows, properties, declared)
        plain = not self._has_its_own_statistics and not declared.partition_by
        gathered = columns_but_texts(rows.schema) if plain else None
        footers = None if gathered is None else Footers.of(self.path)
        if gathered is None or footers is None:
            return self.write(rows)
        aside = DeltaTransaction(self._spark, self.path)  # never committed: it is told to gather less
        aside._create(rows, {**properties, STATISTICS: gathered}, declared)
        written = aside._items(aside.write(rows))
        with ThreadPoolExecutor() as pool:
            files = list(pool.map(partial(self._with_texts, schema=rows.schema, footers=footers), written))
        size, count = sum(file.size() for file in files), sum(map(_rows, files))
        self._state_figures({"numFiles": len(files), "numOutputRows": count, "numOutputBytes": size})
        return self._sequence(files)

    @property
    def _has_its_own_statistics(self) -> bool:
        """Whether the table that is made says of which columns they are, or the session that there are none."""
        stated = self._transaction.metadata().configuration()
        collects = self._spark.conf.get(_COLLECTS, "true") or ""
        return any(stated.contains(name) for name in (STATISTICS, INDEXED)) or collects.lower() != "true"

    def _with_texts(self, file: Any, schema: StructType, footers: Footers) -> Any:
        footer = footers.read(file.path())
        if footer is None:
            return file
        upper = self._delta.stats.StatisticsCollection.truncateMaxStringAgg
        return self._altered(file, stats=with_texts(file.stats(), footer, schema, upper))

    def _create(self, rows: DataFrame, properties: Mapping[str, str], declared: Declaration) -> None:
        configuration = _module(self._jvm.scala.collection.immutable, "Map").empty()
        for name, value in properties.items():
            configuration = configuration.updated(name, value)
        now = self._jvm.scala.Option.apply(self._jvm.System.currentTimeMillis())
        actions = self._delta.actions
        metadata = actions.Metadata(
            self._jvm.java.util.UUID.randomUUID().toString(), None, declared.comment,
            actions.Format("parquet", _module(self._jvm.scala.collection.immutable, "Map").empty()),
            declared.commented(rows._jdf.schema().asNullable().json()),
            self._sequence(declared.partition_by), configuration, now,
        )  # fmt: skip
        ignores_defaults = False  # the session's properties of every new table
        self._transaction.updateMetadata(metadata, ignores_defaults)

    def write(self, rows: DataFrame) -> Any:
        """Write rows as new files of the table; the actions are for the commit."""
        return self._transaction.writeFiles(rows._jdf)

    def names(self, written: Any) -> list[str]:
        """The files of `write`, by their paths below the table."""
        return [file.path() for file in self._items(written)]

    def replace(
        self, key: StructType, keys: Keys, count: Count = ignored, unless: StructField | None = None
    ) -> Replaced:
        """Mark the rows of these keys as deleted. `keys`: columns of `key`; `unless`: a column with a value stays.

        The scan reads the key columns of the table's files and not their deletion vectors: a row that was deleted
        before is deleted once more, which changes nothing.
        """
        if self.files.isEmpty():
            return Replaced(self._nil, 0)
        version = int(self._transaction.snapshot().version())
        place = [F.col("_metadata.file_path").alias(FILE), F.col("_metadata.row_index").alias(ROW)]
        few = Few(keys.rows, key.names[0], null_matches=keys.null_matches) if keys.few else None
        paths = data_paths(self.path, version, key, few, count)
        if not paths:
            return Replaced(self._nil, 0)
        read = key if unless is None else StructType([*key, unless])
        stored = self.read_files(read, paths).select(*map(named, read.names), *place)
        if unless is not None:
            stored = stored.where(named(unless.name).isNull())
        return self._mark(restrict(stored, keys, tuple(key.names)))

    def _mark(self, matched: DataFrame) -> Replaced:
        commands, some = self._delta.commands, self._jvm.scala.Option.apply
        true = _module(self._jvm.org.apache.spark.sql.catalyst.expressions, "Literal").TrueLiteral()
        generator = _module(commands, "DeletionVectorBitmapGenerator")
        have_vectors = True  # some of the files, perhaps; those they have are joined in
        vectors = generator.buildRowIndexSetsForFilesMatchingCondition(
            self._spark._jsparkSession, self._transaction, have_vectors, matched._jdf, self.files, true,
            some(_column(FILE)), some(_column(ROW)),
        )  # fmt: skip
        helper = _module(commands, "DMLWithDeletionVectorsHelper")
        by_path = helper.generateCandidateFileMap(self._log.dataPath(), self.files)
        touched = helper.findFilesWithMatchingRows(self._transaction, by_path, vectors)
        actions, rows = self._nil, 0
        for number in range(touched.size()):
            file = touched.apply(number)
            former = file.fileLogEntry().deletionVector()
            marked = file.newDeletionVector().cardinality() - (0 if former is None else former.cardinality())
            if marked:
                rows += marked
                actions = actions.appendedAll(self._ended(file))
        return Replaced(actions, rows)

    def _ended(self, file: Any) -> Any:
        """The actions that end some rows of a file, or the file with its last ones."""
        entry = file.fileLogEntry()
        if file.isFullyReplaced():
            return self._nil.appended(entry.remove())
        updates_statistics = True  # to wide bounds
        renewed = entry.removeRows(file.newDeletionVector(), updates_statistics, True)
        return self._nil.appended(renewed._1()).appended(renewed._2())

    def rewrite(self, names: Collection[str], arrange: Callable[[DataFrame], DataFrame]) -> "Rewritten":
        """Write the rows that some of the table's files hold into new ones, and end the old ones.

        Rows marked as deleted are left out. Raises `LakeInconsistent` where fewer or more rows were written.
        """
        chosen = [file for file in self._items(self.files) if file.path() in names]
        snapshot, streaming = self._transaction.snapshot(), False
        rows = self._log.createDataFrame(snapshot, self._sequence(chosen), streaming, self._none)
        written = self.write(arrange(DataFrame(rows, self._spark)))
        expected, found = (sum(map(_rows, files)) for files in (chosen, self._items(written)))
        if expected != found:
            raise LakeInconsistent(
                f"{self.path}: {found:,} rows were written anew of {len(chosen)} files that hold {expected:,} by "
                "Delta's log; nothing was changed. Files of the table were altered: restore it from a copy."
            )
        now, changes_rows = int(self._jvm.System.currentTimeMillis()), False
        added = [self._altered(file, dataChange=False) for file in self._items(written)]
        ended = [file.removeWithTimestamp(now, changes_rows) for file in chosen]
        return Rewritten(self._sequence(added + ended), len(ended), len(added))

    def _items(self, actions: Any) -> Any:
        """A sequence of Scala as one of Python."""
        return self._jvm.scala.jdk.javaapi.CollectionConverters.asJava(actions)

    def _sequence(self, items: Iterable[Any]) -> Any:
        """The reverse of `_items`."""
        return reduce(lambda sequence, item: sequence.appended(item), items, self._nil)

    def _altered(self, file: Any, **members: Any) -> Any:
        """The same new file with other members, where `False` for `dataChange` says that it brings no new row."""
        names = [file.productElementName(number) for number in range(file.productArity())]
        values = [file.productElement(number) for number in range(file.productArity())]
        return file.copy(*[members.get(name, value) for name, value in zip(names, values, strict=True)])

    def commit_rewrite(self, rewritten: "Rewritten", app: str, version: int) -> None:
        """Commit files that were written anew as an OPTIMIZE."""
        by_hand, every_file = False, False
        operation = self._operation("Optimize", self._nil, self._nil, by_hand, self._none, every_file)
        names = operation.operationMetrics().mkString(",").split(",")
        done = {"numAddedFiles": rewritten.added, "numRemovedFiles": rewritten.ended}
        self._state_figures(dict.fromkeys(names, 0) | done)
        self._commit(rewritten.actions, operation, app, version)

    def commit_write(self, written: Any, app: str, version: int, metadata: str) -> None:
        """Commit new files as a WRITE."""
        mode = self._jvm.org.apache.spark.sql.SaveMode.Append
        stated = self._jvm.scala.Option.apply(metadata)
        operation = self._operation("Write", mode, self._none, self._none, stated, *[self._none] * 5)
        self._commit(written, operation, app, version)

    def commit_replaced(self, replaced: Replaced, written: Any, app: str, version: int, rows: int) -> None:
        """Commit the end of some rows, and new files with `rows` rows; the table's history calls it a MERGE."""
        operation = self._operation("Merge", *[self._none] * 4, *[self._nil] * 3)
        names = [*operation.operationMetrics().mkString(",").split(","), "operationNumSourceRows"]
        done = {"numTargetRowsDeleted": replaced.rows, "numTargetRowsInserted": rows, "numOutputRows": rows}
        self._state_figures(dict.fromkeys(names, 0) | done)
        self._commit(written.appendedAll(replaced.actions), operation, app, version)

    def _operation(self, name: str, *arguments: Any) -> Any:
        return getattr(self._delta, f"DeltaOperations${name}")(*arguments)

    def _state_figures(self, figures: Mapping[str, int]) -> None:
        """What `DESCRIBE HISTORY` shows of the commit."""
        metrics = _module(self._jvm.org.apache.spark.sql.execution.metric, "SQLMetrics")
        stated = _module(self._jvm.scala.collection.immutable, "Map").empty()
        for name, value in figures.items():
            metric = metrics.createMetric(self._spark.sparkContext._jsc.sc(), name)
            metric.set(value)
            stated = stated.updated(name, metric)
        self._transaction.registerSQLMetrics(self._spark._jsparkSession, stated)

    def _commit(self, actions: Any, operation: Any, app: str, version: int) -> None:
        identifier = self._delta.actions.SetTransaction(app, version, self._none)
        self._transaction.commit(actions.appended(identifier), operation)


def _column(name: str) -> Any:
    return F.col(name)._jc


def _rows(file: Any) -> int:
    """How many rows of a file are not marked as deleted, by its statistics."""
    return int(file.numLogicalRecords().get())


def _module(package: Any, name: str) -> Any:
    """A Scala object."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")
