"""Pieces of what a first load does, each of which can be run and measured alone."""

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from bench.contest.check import check
from bench.contest.cost import Cost, Scope, measure
from bench.contest.jvm import collect_garbage, jobs
from bench.contest.least import least_tables
from bench.contest.live import live_bytes, tables_below
from bench.contest.ours import JOIN, Ours
from bench.contest.recompute import recompute_first
from bench.contest.scratch import scratch
from lakejoin.storage.delta_log.transaction_id import Transaction
from lakejoin.storage.delta_table.commits import append
from lakejoin.storage.delta_table.direct_scan import LOG_PROPERTIES
from lakejoin.storage.lake.layout import joined_of
from lakejoin.storage.spark.session import start_session
from lakejoin.storage.state.joined_table import PROPERTIES

KINDS = ("recompute", "sources", "tables", "each", "load")
KEPT = {"tables", "each"}
"""Made of a lake that was kept."""

_FOLDED = {"rows", "subscription_store"}
"""Tables that maintenance makes, after the load."""

Piece = Callable[[SparkSession, Path], Path | None]
"""Writes Delta tables below a folder; returns where the joined table is, if it wrote that."""


@dataclass(frozen=True)
class Stand:
    """What pieces are made of, and where Spark runs."""

    workload: Path
    kept: Path | None
    """A lake that `run.py --keep-lake` made of the workload."""
    master: str
    driver_memory: str

    def session(self) -> SparkSession:
        """Start a session, or return the one of this process."""
        return start_session(self.master, {"spark.driver.memory": self.driver_memory})


def pieces(kinds: Sequence[str], stand: Stand) -> Mapping[str, Piece]:
    """The pieces of some of `KINDS` by name: one for each, but of `each` one for each table."""
    return {name: piece for kind in kinds for name, piece in _pieces(kind, stand).items()}


def cost(name: str, piece: Piece, stand: Stand) -> Cost:
    """What it costs to run a piece once. Raises `WrongAnswer` where the joined table is not what it must be."""
    spark = stand.session()
    with scratch(stand.workload) as folder:
        scope = Scope(pid=os.getpid(), without=(), folder=folder, jobs=lambda: jobs(spark))
        collect_garbage(spark)
        joined, found = measure(partial(piece, spark, folder), scope)
        if joined is not None:
            check(spark.read.format("delta").load(str(joined)), name, stand.workload, 0)
    return found


def cost_in_new_process(kind: str, stand: Stand) -> Cost:
    """What a piece costs as the first thing that a process does, once its session is ready."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(_only_cost, kind, stand).result()


def _only_cost(kind: str, stand: Stand) -> Cost:
    ((name, piece),) = _pieces(kind, stand).items()
    return cost(name, piece, stand)


def _pieces(kind: str, stand: Stand) -> Mapping[str, Piece]:
    of_workload = {"recompute": _recompute, "sources": _sources, "load": _load}
    if kind in of_workload:
        return {kind: partial(of_workload[kind], stand.workload)}
    assert stand.kept is not None  # the command line asks for it
    lake = stand.kept / "lake"
    names = [
        str(table.relative_to(lake))
        for table in tables_below(lake)
        if not table.name.startswith("_") and table.name not in _FOLDED and live_bytes(table)
    ]
    if kind == "tables":
        return {kind: partial(_copy, lake, names)}
    return {name: partial(_copy, lake, [name]) for name in names}


def _recompute(workload: Path, spark: SparkSession, folder: Path) -> Path:
    recompute_first(spark, workload, folder / "joined")
    return folder / "joined"


def _sources(workload: Path, spark: SparkSession, folder: Path) -> Path | None:
    return _write(least_tables(spark, workload), folder)


def _load(workload: Path, spark: SparkSession, folder: Path) -> Path:
    ours = Ours(spark, workload, folder / "ours")
    ours.prepare(0)
    ours.run(0)
    return ours.folder / joined_of(JOIN)


def _copy(lake: Path, names: Sequence[str], spark: SparkSession, folder: Path) -> Path | None:
    return _write({name: spark.read.format("delta").load(str(lake / name)) for name in names}, folder)


def _write(tables: Mapping[str, DataFrame], folder: Path) -> Path | None:
    """Write tables as a load does, with the properties that it gives them, for statistics take their time."""

    def write(table: str) -> None:
        stated = PROPERTIES if table == joined_of(JOIN) else LOG_PROPERTIES
        append(tables[table], str(folder / table), Transaction(table, 1, {}), stated)

    with ThreadPoolExecutor() as pool:
        list(pool.map(write, tables))
    return folder / joined_of(JOIN) if joined_of(JOIN) in tables else None
