"""However a stream and its table are cut into batches, a record meets what the table knows of its time (KIP-923)."""

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from properties.scenarios import DAYS, Arrival, arrivals
from properties.stream_model import CUT_FREE, StreamModel
from properties.stream_trial import StreamTrial
from properties.streams import GRACE, Event, History, arrivals_in_order, events, within_grace

_EACH_DAY = tuple(Arrival((day,)) for day in range(DAYS))
_LONG = 10_000
"""A retention that no record of a history outlives."""

# (side, day, id, key, value, time, sequence); the number of a table's record is of no account
_CORNERS = (
    ("table", 0, 0, "x", "a", 10, 1),
    ("table", 0, 0, "y", "a", 10, 2),
    ("stream", 0, 1, "x", "waits", 12, 1),
    ("stream", 0, 2, None, "no key", 90, 2),  # moves no time
    ("stream", 0, 3, "gone", "no match", 12, 3),
    ("stream", 0, 4, "x", "too early", 9, 4),
    ("table", 1, 0, "x", "late", 11, 3),  # what record 1 meets
    ("table", 1, 0, "y", None, 13, 4),
    ("stream", 1, 5, "y", "after the tombstone", 17, 5),  # the bound: releases what is at 12
    ("stream", 1, 6, "y", "before the tombstone", 12, 6),  # at the bound: not late
    ("stream", 1, 7, "y", "late", 11, 7),
    ("stream", 1, 1, "x", "waits", 12, 1),  # again
    ("stream", 1, 8, "x", "skip", 99, 8),
    ("table", 2, 0, "x", "b", 30, 5),  # from here on 22 is the bound of history
    ("table", 2, 0, "x", "same time", 30, 6),
    ("table", 2, 0, "x", "older sequence", 30, 4),
    ("table", 2, 0, "y", "edge", 22, 7),
    ("table", 2, 0, "y", "expired", 21, 8),
    ("stream", 2, 9, "x", "behind the bound", 21, 9),
    ("stream", 2, 10, "y", "at the bound", 22, 10),
    ("stream", 2, 11, "x", "newest", 30, 11),
)
_KNOWN = History(
    tuple(Event(side, id_, key, v, time, seq, day) for side, day, id_, key, v, time, seq in _CORNERS),
    tuple(Arrival((day,)) for day in range(3)),
)


@pytest.mark.spark
def test_records_meet_what_the_model_finds_in_known_corners(tmp_path: Path, spark: SparkSession) -> None:
    """Bounds of grace and of history, late and repeated records, tombstones: a batch a day, then a flush."""
    emitted = StreamTrial(_KNOWN, tmp_path, spark, history_retention=8).run()
    assert '[1, "x", "waits", 12, 1, "x", "late", 11, 3]' in emitted["waiting"]
    assert '[6, "y", "before the tombstone", 12, 6, "y", "a", 10, 2]' in emitted["waiting"]


# A history takes half a minute: a failure is told by its records instead of being shrunk.
_RANDOM = settings(
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)


@pytest.mark.spark
@pytest.mark.slow
@settings(_RANDOM, max_examples=4)
@given(
    history=st.builds(History, events(), arrivals()), history_retention=st.sampled_from([GRACE, 8, 20, _LONG])
)
def test_records_meet_what_the_model_finds_after_every_batch(
    history: History, history_retention: int, spark: SparkSession
) -> None:
    """Random lateness, cuts and orders of days: each batch's rows are as-of lookups, each record is counted."""
    with TemporaryDirectory(prefix="trial-") as path:
        StreamTrial(history, Path(path), spark, history_retention).run()


@pytest.mark.spark
@pytest.mark.slow
@settings(_RANDOM, max_examples=2)
@given(drawn=events().map(within_grace), cut=arrivals_in_order())
def test_output_does_not_depend_on_the_cut_when_the_table_is_late_by_less_than_grace(
    drawn: tuple[Event, ...], cut: tuple[Arrival, ...], spark: SparkSession
) -> None:
    """What waits for its grace period is the same in the end, whether each day is a batch or several are one."""
    emitted = []
    for days in (_EACH_DAY, cut):
        with TemporaryDirectory(prefix="trial-") as path:
            emitted.append(StreamTrial(History(drawn, days), Path(path), spark, _LONG).run())
    for join in CUT_FREE:
        assert emitted[0][join] == emitted[1][join]


@given(drawn=events().map(within_grace), cut=arrivals_in_order())
def test_model_does_not_depend_on_the_cut_when_the_table_is_late_by_less_than_grace(
    drawn: tuple[Event, ...], cut: tuple[Arrival, ...]
) -> None:
    """The histories keep what the test of the product takes for granted, and the model what it promises."""
    assert _by_model(drawn, cut) == _by_model(drawn, _EACH_DAY)


def _by_model(drawn: tuple[Event, ...], cut: tuple[Arrival, ...]) -> dict[str, Counter[str]]:
    model, emitted = StreamModel(_LONG), {join: Counter[str]() for join in CUT_FREE}
    for arrival in cut:
        placed = [((str(one.day), line), one) for line, one in enumerate(drawn) if one.day in arrival.days]
        table, stream = ([one for one in placed if one[1].side == side] for side in ("table", "stream"))
        rows = model.take(table, table, stream).rows
        for join, found in emitted.items():
            found.update(rows[join])
    for join, rows_of_flush in model.flush().rows.items():
        if join in emitted:
            emitted[join].update(rows_of_flush)
    return emitted
