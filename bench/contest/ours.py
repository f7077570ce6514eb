"""Lakejoin itself: from files on disk to the joined table committed, its rules evaluated; with changelog or history."""

import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from bench.contest.contender import PREFIX, Contender, StageBytes, Work
from bench.contest.copies import copy_linked, link
from bench.contest.jvm import traffic
from bench.contest.live import live_bytes, tables_below
from bench.contest.upkeep import maintain_all
from bench.tpch.answers import change_file
from lakejoin.orchestration.config import load_text
from lakejoin.orchestration.runs.run import run_batches
from lakejoin.storage.errors import LakejoinError
from lakejoin.storage.lake.layout import Lake, joined_of
from lakejoin.storage.lake.plan import Published

PIPELINE_FILE = "lakejoin.yaml"
JOIN = "orders_with_customers"
PIPELINE = f"""\
name: bench
lake: ./lake
tables:
  orders:
    source: {{format: parquet, path: "source/left/*.parquet"}}
    columns:
      offset: bigint
      event_time: timestamp
      o_orderkey: bigint
      o_custkey: bigint
      o_orderstatus: string
      o_totalprice: decimal(15,2)
      o_orderdate: date
      o_orderpriority: string
      o_comment: string
    key: [o_orderkey]
    sequence: [offset]
    event_time: event_time
  customers:
    source: {{format: parquet, path: "source/right/*.parquet"}}
    columns:
      offset: bigint
      event_time: timestamp
      c_custkey: bigint
      c_name: string
      c_acctbal: decimal(15,2)
      c_mktsegment: string
      c_comment: string
    key: [c_custkey]
    sequence: [offset]
    event_time: event_time
joins:
  {JOIN}: {{left: orders, right: customers, foreign_key: [o_custkey], how: left, prefix: {PREFIX}}}
"""
"""The pipeline that is raced."""
_STAGE = re.compile(r"batch \d+: ([^:]+)")


class NothingDone(LakejoinError):
    """No batch was worked off although files were waiting."""


class Ours(Contender):
    """Works off each batch of a workload as one batch of a pipeline; a process stays warm between them."""

    name = "ours"
    pipeline = PIPELINE

    def __init__(self, spark: SparkSession, workload: Path, folder: Path, kept: Path | None = None) -> None:
        """Begin in an empty folder, or with the first load that another race kept."""
        self._spark, self._workload, self._home = spark, workload, folder
        self._source = folder / "source"
        if kept is None:
            folder.mkdir()
        else:
            copy_linked(kept, folder)
        file = folder / PIPELINE_FILE
        file.write_text(self.pipeline)
        self._pipeline = load_text(self.pipeline, file)
        self._lake = Lake(self._pipeline.lake)
        self._batches: Iterator[Published] = iter(())
        self.folder = Path(self._pipeline.lake)

    def prepare(self, batch: int) -> None:
        """Let the files of a batch appear among those of the sources."""
        for side in ("left", "right"):
            file = change_file(self._workload, side, batch)
            (self._source / side).mkdir(parents=True, exist_ok=True)
            link(file, self._source / side / file.name)

    def run(self, batch: int) -> Work:
        """Work off what is pending, which is this batch. Raises `NothingDone`."""
        self._batches = run_batches(self._pipeline, self._spark)
        published = next(self._batches, None)
        if published is None:
            raise NothingDone(f"batch {batch} of {self._workload}: both of its files are empty")
        return Work(published.seconds, {**published.tables, **published.joins})

    def stage_bytes(self, first_job: int) -> StageBytes:
        """By the names that the run gives its jobs: pipeline, batch and stage, with what Delta adds."""
        found: dict[str, Counter[str]] = {}
        for name, spent in traffic(self._spark, first_job).items():
            stage = _STAGE.search(name)
            found.setdefault(stage[1] if stage else name, Counter()).update(asdict(spent))
        return found

    def joined(self) -> DataFrame:
        """The joined table, as any reader of the lake sees it."""
        return self._spark.read.format("delta").load(self._lake.path(joined_of(JOIN)))

    def maintain(self, *, everything: bool) -> None:
        """Let the run come to its end: it folds the state that is due. With `everything` all tables are kept."""
        for _ in self._batches:
            pass
        if everything:
            maintain_all(self._pipeline, self._spark)

    def stored(self) -> Mapping[str, int]:
        """Every table of the lake, bookkeeping included."""
        return {str(table.relative_to(self.folder)): live_bytes(table) for table in tables_below(self.folder)}

    def keep(self, target: Path) -> None:
        """Keep a copy of sources and lake as they are now, in place of one that was kept there before."""
        shutil.rmtree(target, ignore_errors=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        copy_linked(self._home, target)


class OursWithChangelog(Ours):
    """The same, and every emission is kept as well; it may begin with a first load without."""

    name = "changelog"
    pipeline = PIPELINE.replace("how: left,", "how: left, changelog: true,")

    def keep(self, target: Path) -> None:
        """Nothing: the load that is kept has no changelog."""


class OursWithHistory(OursWithChangelog):
    """The same with every version of the joined rows; the batch after a first load without begins it."""

    name = "history"
    pipeline = PIPELINE.replace("how: left,", "how: left, history: true,")
