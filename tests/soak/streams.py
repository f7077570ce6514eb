"""Random histories of a stream and its tables whose runs are cut off or lose answers, each repeatable from its seed."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

from pyspark.sql import SparkSession

from faults.crashing import WHEN
from faults.crashing import Crash as Ended
from orchestration.config import Pipeline
from orchestration.run import run_batches
from properties.scenarios import random_arrivals
from properties.stream_model import JOINS
from properties.stream_trial import StreamTrial
from properties.streams import GRACE, History, random_events
from soak.actions import Crash, Disturbance, Lost
from soak.disturbing import disturbed
from storage.lake import (
    MAINTENANCE,
    PLAN,
    PUBLISHED,
    QUARANTINE,
    Lake,
    changes_of,
    joined_of,
    records_of,
    rows_of,
    versions_of,
)
from storage.maintenance import BATCHES_BEHIND, Folds
from storage.plan import Journal, Published

_TABLES = ("prices", "latest")
_OF_BATCHES = (
    PLAN, *map(changes_of, _TABLES), records_of("uses"), QUARANTINE, *map(joined_of, JOINS), PUBLISHED,
)  # fmt: skip
_OF_FOLDS = (MAINTENANCE, *map(rows_of, _TABLES), versions_of("prices"))
_DISTURBED = (0, 0, 1, 1, 2)
"""How many runs are disturbed before one that nothing disturbs."""


class DisturbedRuns:
    """Works off what is pending in runs that are cut off, or lose an answer, until one comes to its end."""

    def __init__(self, random: Random) -> None:
        self.happened: Counter[str] = Counter()
        self._random = random

    def __call__(self, pipeline: Pipeline, spark: SparkSession, **options: Any) -> Iterator[Published]:
        """Yield every batch that is published, once, as `run_batches` does."""
        lake = Lake(pipeline.lake)
        for disturbance in [*(self._disturbance() for _ in range(self._random.choice(_DISTURBED))), None]:
            behind = self._random.choice([1, BATCHES_BEHIND])
            seen = len(Journal(lake).published)
            with (
                mock.patch("storage.maintenance.BATCHES_BEHIND", behind),
                disturbed(disturbance) as counted,
            ):
                try:
                    for report in run_batches(pipeline, spark, **options):
                        seen = report.batch
                        yield report
                except Ended:
                    assert disturbance is not None
            # one whose end was the last that the run came to
            yield from Journal(lake).published[seen:]
            if disturbance is not None:
                name = type(disturbance).__name__.lower()
                self.happened[name if counted.reached else f"{name} missed"] += 1

    def _disturbance(self) -> Disturbance:
        table = self._random.choice([*_OF_BATCHES, *_OF_BATCHES, *_OF_FOLDS])
        return self._random.choice([Crash(table, self._random.choice(WHEN)), Lost(table)])


def run_stream_history(seed: int, folder: Path, spark: SparkSession) -> Counter[str]:
    """Run the history of a seed, compare after every batch; return what happened how often.

    Raises `AssertionError` where a batch went wrong.
    """
    random = Random(seed)
    history = History(random_events(random), random_arrivals(random))
    runs = DisturbedRuns(random)
    trial = StreamTrial(history, folder, spark, random.choice([GRACE, 8, 20, 10_000]), runs)
    try:
        trial.run()
    except (Exception, Ended) as error:
        raise AssertionError(f"{type(error).__name__}: {error}\n{history.arrivals}") from error
    folds, batches = len(Folds(trial.lake).begun), len(Journal(trial.lake).published)
    return runs.happened + Counter({"stream": 1, "batch": batches, "fold": folds})
