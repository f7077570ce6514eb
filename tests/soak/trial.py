"""Runs a history through the product, and holds every batch that is published against the model."""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from pyspark.sql import SparkSession

from faults.crashing import Crash as Ended
from lakejoin.orchestration.config import Pipeline, load
from lakejoin.orchestration.maintenance.maintain import maintain
from lakejoin.orchestration.runs.migrate import migrate
from lakejoin.orchestration.runs.retry_quarantine import known, retry
from lakejoin.orchestration.runs.run import run_batches
from lakejoin.storage.errors import LakeBusy, SourceChanged
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.state.folds import BATCHES_BEHIND, Folds
from properties.relations import TABLES
from properties.trial import FIRST_DAY, source_line, write_configuration
from soak.actions import (
    Action,
    Crash,
    History,
    Maintain,
    Migrate,
    Overtaken,
    Refused,
    Replace,
    Retry,
    Run,
    Write,
)
from soak.comparison import check_counts, check_joined, check_logs
from soak.disturbing import disturbed
from soak.model import ADDED, LONGEST, Model

SETTLED = timedelta(hours=1)
"""How old a file must be for a run that lets files settle."""


class SoakTrial:
    """A lake of its own, with the model of what it must hold and a count of what happened to it."""

    def __init__(self, history: History, folder: Path, spark: SparkSession) -> None:
        """Prepare the configuration in the folder; nothing runs yet."""
        self.history, self.folder, self.spark = history, folder, spark
        for table in TABLES.values():
            (folder / table).mkdir()
        self.model = Model(history.joins)
        self.happened: Counter[str] = Counter()
        """What happened how often, batches and folds among it."""
        self._pipeline = self._configure()
        self._lake = Lake(self._pipeline.lake)
        self._compared = 0
        self._begun = time.time()
        self._written = 0

    def run(self) -> Counter[str]:
        """Do all that the history says, compare after every batch; return what happened how often.

        Raises `AssertionError` with the action at which the lake or a message was not as it should be.
        """
        done: list[Action] = []
        try:
            for action in self.history.actions:
                done.append(action)
                self._act(action)
                self._compare_published()
            assert self.model.unread() == []
            check_logs(self.model, self.spark, self._lake, Journal(self._lake).published)
        except (Exception, Ended, pytest.fail.Exception) as error:
            told = "\n".join(f"  {action}" for action in done)
            raise AssertionError(f"{type(error).__name__}: {error}\nactions so far:\n{told}") from error
        self.happened["fold"] = len(Folds(self._lake).begun)
        self.happened["batch"] = self._compared
        return self.happened

    def _act(self, action: Action) -> None:
        deeds: dict[type, Callable[[Any], None]] = {
            Write: self._write, Run: self._run, Refused: self._refused, Replace: self._replace,
            Maintain: self._maintain, Migrate: self._migrate, Retry: self._retry,
        }  # fmt: skip
        deeds[type(action)](action)

    def _write(self, write: Write) -> None:
        self.model.write(write)
        text = "\n".join(source_line(*line) for line in write.lines)
        match write.ending:
            case "whole":
                text += "\n" if text else ""
            case "torn":
                text = text[: -(len(source_line(*write.lines[-1])) // 2)]
        path = self.folder / TABLES[write.side] / write.name
        path.write_text(text, "utf-8")
        if not write.young:
            # each write at a time of its own: one of the same length must not be taken for the former
            self._written += 1
            old = self._begun - 2 * SETTLED.total_seconds() + self._written
            os.utime(path, (old, old))
        if write.kind != "day":
            self.happened[write.kind] += 1

    def _run(self, run: Run) -> None:
        behind = 1 if run.folds else BATCHES_BEHIND
        with (
            mock.patch("lakejoin.storage.state.folds.BATCHES_BEHIND", behind),
            mock.patch("lakejoin.storage.lake.bookkeeping.MANY_FILES", 3),
            mock.patch("lakejoin.storage.state.folds.ROWS_PER_FILE", 3),
            mock.patch("lakejoin.storage.delta_table.file_pruning.WORTH_ROWS", 1),
            mock.patch("lakejoin.storage.delta_table.file_pruning.WORTH_VALUES", 1),
            mock.patch("lakejoin.storage.delta_table.file_pruning.LARGE_FILE", 1),
            mock.patch("lakejoin.storage.state.folds.LARGE_TABLE", 1),
            disturbed(run.disturbance, partial(self._others, run)) as counted,
        ):
            try:
                self._work_off(run)
            except Ended:
                assert isinstance(run.disturbance, Crash)
            except LakeBusy:
                assert isinstance(run.disturbance, Overtaken), "nobody else was at work"
        if run.disturbance is not None:
            name = type(run.disturbance).__name__.lower()
            self.happened[name if counted.reached else f"{name} missed"] += 1
        elif not run.settles:
            assert Journal(self._lake).unfinished is None
            assert self.model.unread() == []

    def _work_off(self, run: Run) -> None:
        settle = SETTLED if run.settles else None
        for _ in run_batches(
            self._pipeline, self.spark, batch_by=run.batch_by, batch_rows=run.batch_rows, settle=settle
        ):
            self._compare_published()

    def _others(self, run: Run) -> None:
        """Another run works off whatever is pending; what it publishes is compared when both are over."""
        list(run_batches(self._pipeline, self.spark, batch_rows=run.batch_rows))

    def _replace(self, action: Replace) -> None:
        """Take the files of a day anew; where that is cut off before it is planned, once more."""
        day, planned = FIRST_DAY + timedelta(days=action.day), len(Journal(self._lake).plans)
        if self._is_cut_off(
            action.crash, lambda: run_batches(self._pipeline, self.spark, replace=day)
        ) and planned < len(Journal(self._lake).plans):
            self._work_off(Run())
        elif len(Journal(self._lake).plans) == planned:
            list(run_batches(self._pipeline, self.spark, replace=day))
        self.happened["replace"] += 1

    def _is_cut_off(self, crash: Crash | None, begin: Callable[[], Iterable[object]]) -> bool:
        """Do something, until it is cut off; returns whether it was."""
        if crash is None:
            return False
        with disturbed(crash) as counted, suppress(Ended):
            list(begin())
        self.happened["crash" if counted.reached else "crash missed"] += 1
        return counted.reached

    def _refused(self, refused: Refused) -> None:
        """A run stops before it plans anything, and says how to go on."""
        day = FIRST_DAY + timedelta(days=refused.day)
        with pytest.raises(SourceChanged, match=f"`lakejoin run FILE --replace {day}`"):
            list(run_batches(self._pipeline, self.spark))
        self.happened["refused"] += 1

    def _maintain(self, action: Maintain) -> None:
        with mock.patch("lakejoin.orchestration.maintenance.maintain.WORKS", action.works):
            done = list(maintain(self._pipeline, lambda: self.spark, everything=True))
        assert [step.skipped for step in done if step.skipped] == []
        self.happened["maintenance"] += 1
        if self._compared:
            check_joined(self.model, self.spark, self._lake, Journal(self._lake).published[-1])

    def _migrate(self, action: Migrate) -> None:
        self.model.columns[action.side] = {**self.model.columns[action.side], ADDED: "string"}
        self._pipeline = self._configure()
        self._is_cut_off(action.crash, lambda: migrate(self._pipeline, lambda: self.spark))
        journal = Journal(self._lake)
        if journal.unfinished is not None:
            # its batch was planned: a run finishes it
            list(run_batches(self._pipeline, self.spark))
        else:
            list(migrate(self._pipeline, lambda: self.spark))
        self.happened["migrate"] += 1

    def _retry(self, _: Retry) -> None:
        self.model.longest = None
        self._pipeline = self._configure()
        list(retry(self._pipeline, lambda: self.spark, known(self._pipeline, ())))
        self.happened["retry"] += 1

    def _compare_published(self) -> None:
        """Hold every batch against the model that was published since the last time."""
        journal = Journal(self._lake)
        for report in journal.published[self._compared :]:
            expected = self.model.take(journal.plans[report.batch - 1])
            check_counts(self.model, report, expected)
            check_joined(self.model, self.spark, self._lake, report)
            self._compared = report.batch

    def _configure(self) -> Pipeline:
        limits = {} if self.model.longest is None else {"limits": {"line": f"{LONGEST} bytes"}}
        old_versions = {} if self.history.keeps_old_versions else {"maintenance": {"retention": "0 days"}}
        path = write_configuration(
            self.folder,
            self.history.joins,
            columns=self.model.columns,
            source=limits,
            maintenance=old_versions,
        )
        return load(path)
