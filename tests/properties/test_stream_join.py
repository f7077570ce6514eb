"""However a stream and its table are cut into batches, a record meets what the table knows of its time (KIP-923)."""

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from properties.scenarios import DAYS, UNSHRUNK, Arrival, arrivals
from properties.stream_corners import AT_ONCE, BACKWARDS, IN_ORDER
from properties.stream_model import CUT_FREE, StreamModel
from properties.stream_trial import StreamTrial
from properties.streams import GRACE, Event, History, arrivals_in_order, events, within_grace

_EACH_DAY = tuple(Arrival((day,)) for day in range(DAYS))
_LONG = 10_000
"""A retention that no record of a history outlives."""


@pytest.mark.spark
@pytest.mark.parametrize(
    "history",
    [
        pytest.param(IN_ORDER, id="in order", marks=pytest.mark.slow),
        pytest.param(BACKWARDS, id="backwards", marks=pytest.mark.slow),
        pytest.param(AT_ONCE, id="at once", marks=pytest.mark.slow),
    ],
)
def test_records_meet_what_the_model_finds_in_known_corners(
    history: History, tmp_path: Path, spark: SparkSession
) -> None:
    """Bounds of grace and of history, late and repeated records, tombstones; a flush in the end."""
    StreamTrial(history, tmp_path, spark, history_retention=8).run()


@pytest.mark.spark
@pytest.mark.slow
@settings(UNSHRUNK, max_examples=4)
@given(
    history=st.builds(History, events(), arrivals()),
    history_retention=st.sampled_from([GRACE, 8, 20, _LONG]),
)
def test_records_meet_what_the_model_finds_after_every_batch(
    history: History, history_retention: int, spark: SparkSession
) -> None:
    """Random lateness, cuts and orders of days: each batch's rows are as-of lookups, each record is counted."""
    with TemporaryDirectory(prefix="trial-") as path:
        StreamTrial(history, Path(path), spark, history_retention).run()


@pytest.mark.spark
@pytest.mark.slow
@settings(UNSHRUNK, max_examples=1)
@given(history=st.builds(History, events(), arrivals()))
def test_fold_after_every_batch_changes_no_later_batch(history: History, spark: SparkSession) -> None:
    """What folding forgets of a table's history, no lookup asks for."""
    with (
        TemporaryDirectory(prefix="trial-") as path,
        mock.patch("lakejoin.storage.state.folds.BATCHES_BEHIND", 1),
    ):
        StreamTrial(history, Path(path), spark, history_retention=8).run()


@pytest.mark.spark
@pytest.mark.slow
@settings(UNSHRUNK, max_examples=2)
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
