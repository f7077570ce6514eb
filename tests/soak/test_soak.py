"""A short history of each kind of event; `make soak` runs many random ones."""

from pathlib import Path
from random import Random

import pytest
from pyspark.sql import SparkSession

from properties.relations import JOINS
from properties.scenarios import random_sequence
from soak.actions import Crash, History, Maintain, Overtaken, Run
from soak.histories import Author, history
from soak.trial import SoakTrial

SEED = 20240227
"""Of the short history."""


@pytest.mark.spark
@pytest.mark.slow
def test_lake_is_what_its_input_says_whatever_happens_to_it(tmp_path: Path, spark: SparkSession) -> None:
    """Torn and repeated files, a corrected day, a new column; a crash, a fold, another run at the same time."""
    random = Random(SEED)
    sequences = tuple(random_sequence(random) for _ in range(20))
    joins = {name: JOINS[name] for name in ("enriched", "enriched_twice")}
    author = Author(random, sequences, joins)
    other, torn, run, whole, *corrected = author.day(3, "torn, read", "nothing")
    actions = [
        *author.day(0, "whole", "nothing"),
        *(other, torn, Run(disturbance=Crash("joins/enriched/joined", "during")), Maintain(("fold",)), run),
        *(whole, *corrected),
        *author.between("migrate"),
        author.between("again")[0],
        *list(author.day(1, "whole", "nothing"))[:2],
        *(Run(disturbance=Overtaken("tables/left_rows/changes", "during")), Run()),
        *author.between("retry"),
    ]

    trial = SoakTrial(History(SEED, sequences, joins, False, tuple(actions)), tmp_path, spark)
    happened = trial.run()

    assert happened["batch"] > 5
    wanted = ("crash", "fold", "overtaken", "migrate", "torn, read", "refused", "replace", "retry", "again")
    assert [what for what in wanted if not happened[what]] == []


def test_history_is_that_of_its_seed() -> None:
    """A history that failed can be repeated; another seed is another history."""
    assert history(7) == history(7)
    assert history(7) != history(8)
