"""Keeps frames that a batch uses several times: each is computed once and has no longer the plan that made it.

A cached frame would be computed once as well. But its plan lives on in every plan built on it, and Spark analyses all
of it again at each step. With a frame used twice at each of five steps, most of a small batch's time went there.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession

from lakejoin.storage.filesystem import spark_path
from lakejoin.storage.spark.hadoop import remove
from lakejoin.storage.spark.session import changed_settings
from lakejoin.storage.spark.start import SETTINGS
from lakejoin.transforms.model.keys import Keys

SMALL = 200_000
"""Up to this many records a batch is worked off without shuffles: what it holds fits one task."""

_FOR_SMALL = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.constraintPropagation.enabled": "false",  # as `SETTINGS` says, whatever a user has set
}
_FOR_LARGE = {"spark.sql.files.openCostInBytes": "1m"}
"""Spark splits a file into a part for each core; all but the last are longer by the cost it assumes of opening one."""


def fits_one_task(rows: int) -> bool:
    """Whether so many rows are worked off without shuffles."""
    return rows <= SMALL


class Frames:
    """The frames of one batch. A small one holds them in memory, a large one in files.

    A large frame in memory would be kept row by row with all its columns, and read whole by each step that needs a
    few of them; from Parquet files a step reads what it needs.
    """

    def __init__(self, spark: SparkSession, scratch: str, *, small: bool) -> None:
        self.small = small
        """Whether the batch, and all that it touches so far, fits one task."""
        self._usual = {name: str(spark.conf.get(name)) for name in _FOR_SMALL}
        self._spark, self._scratch, self._numbers = spark, scratch, count(1)
        self._kept: list[DataFrame] = []
        # What kept frames are computed from. If the JVM collected these plans before the batch ends, the metrics of
        # their rows would have nowhere to go, and Spark would log an error for every task.
        self._sources: list[DataFrame] = []

    def keep(self, frame: DataFrame) -> DataFrame:
        """The same rows, computed once. A small frame is computed when it is first asked for, a large one now."""
        if not self.small:
            return self._written(frame)
        return self._in_memory(self.gather(frame))

    def keep_found(self, frame: DataFrame) -> DataFrame:
        """The rows that few keys have found, counted: if they are many, the batch goes on as a large one."""
        if not self.small:
            return frame
        found = self._in_memory(frame)  # by as many tasks as it takes
        self.expect(found.count())
        return found

    def keep_if_small(self, frame: DataFrame) -> DataFrame:
        """The same rows, computed once if they are few: to write many takes longer than to join kept ones again."""
        return self.keep(frame) if self.small else frame

    def keep_if_large(self, frame: DataFrame) -> DataFrame:
        """The same rows, computed once if they are many: for a few columns of a frame that is not kept itself."""
        return frame if self.small else self.keep(frame)

    def gather(self, frame: DataFrame) -> DataFrame:
        """The same rows, in one partition if they are few.

        Frames of one partition are joined and counted where they are, without a shuffle; and starting a task costs
        more than its share of so few rows.
        """
        return frame.coalesce(1) if self.small else frame

    def keys(self, rows: DataFrame, most: int | None = None, *, null_matches: bool = False) -> Keys:
        """Keys of the batch, to look rows up by; `most`: at most so many, where that is known."""
        return Keys(rows, few=self.small, most=most, null_matches=null_matches)

    def expect(self, rows: int) -> None:
        """Go on as a large batch if the rows that this one turns out to touch do not fit one task."""
        if self.small and not fits_one_task(rows):
            self.grow()

    def grow(self) -> None:
        """Go on as a large batch.

        Source files are split as before: another thread may be numbering lines by where the parts of a file begin.
        """
        self.small = False
        for name, value in self._usual.items():
            self._spark.conf.set(name, value)

    def release(self) -> None:
        """Free everything that was kept."""
        for kept in self._kept:
            # a kept frame is a leaf that Python cannot free
            kept._jdf.queryExecution().analyzed().rdd().unpersist(False)  # noqa: SLF001
        remove(self._spark, [self._scratch], folders=True)

    def _in_memory(self, frame: DataFrame) -> DataFrame:
        kept = frame.localCheckpoint(eager=False, storageLevel=StorageLevel.MEMORY_AND_DISK)
        self._sources.append(frame)
        self._kept.append(kept)
        return kept

    def _written(self, frame: DataFrame) -> DataFrame:
        path = f"{self._scratch}/{next(self._numbers)}"
        frame.write.mode("overwrite").parquet(path, compression="lz4_raw")  # over what a crash left
        return self._spark.read.schema(frame.schema).parquet(spark_path(path))


@contextmanager
def framing(spark: SparkSession, scratch: str, records: int) -> Iterator[Frames]:
    """Frames for a batch of so many records, and settings: a small one neither shuffles nor plans twice.

    `scratch`: folder for the frames of a large batch, which no other batch uses; it is removed at the end.
    """
    frames = Frames(spark, scratch, small=fits_one_task(records))
    with changed_settings(spark, _FOR_SMALL if frames.small else _for_large(spark)):
        try:
            yield frames
        finally:
            frames.release()


def _for_large(spark: SparkSession) -> dict[str, str]:
    """The settings of a large batch, without those of which a user has said otherwise."""
    return {name: value for name, value in _FOR_LARGE.items() if spark.conf.get(name) == SETTINGS[name]}


def aggregated(rows: DataFrame, *values: Column) -> dict[str, Any]:
    """Values over all rows, by name; it runs a job."""
    row = rows.agg(*values).first()
    assert row is not None  # an aggregate without groups has one row
    return row.asDict()
