"""Opens the history of a result for `show`: its versions, or the rows that it had after a batch or at a time."""

from collections.abc import Collection
from datetime import datetime
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.errors import WrongUsage
from lakejoin.orchestration.lake_state.config_fingerprints import kept_history
from lakejoin.orchestration.show.frame_view import Open, View, view_by_key
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import history_of, shown_name
from lakejoin.storage.spark.kept_frames import aggregated
from lakejoin.storage.state.pinned_state import State
from lakejoin.storage.state.settled_times import forgotten_rows
from lakejoin.transforms.foreign_key_join.history import UNTIL, own_columns
from lakejoin.transforms.model.event_time import from_micros, instant, latest, valid_at
from lakejoin.transforms.model.result_spec import ResultSpec
from lakejoin.transforms.model.schemas import BATCH, VALID_FROM, VALID_TO, named
from lakejoin.transforms.model.specs import TableSpec


def history_views(join: ResultSpec) -> dict[str, Open]:
    """Return what can be shown of a result's history, by name; nothing where it is not kept."""
    return {} if join.history is None else {shown_name(history_of(join.name)): partial(_history, join)}


def result_at(pipeline: Pipeline, name: str, journal: Journal, time: datetime) -> Open:
    """Return what opens a result with `history` as it was at a time, by the batches' clock. Raises `WrongUsage`.

    Where the history goes by event time: as it was true at that time, as far as is known now.
    """
    if (sides := pipeline.event_histories.get(name)) is not None:
        _check_kept(pipeline, name, journal, len(journal.published), f"--as-of {_shown(time)}")
        return partial(_at, pipeline.keyed_spec(name), sides, time)
    before = [plan.batch for plan in journal.plans if plan.planned_at <= time]
    _check_kept(pipeline, name, journal, min(len(before), len(journal.published)), f"--as-of {_shown(time)}")
    return partial(_at, pipeline.keyed_spec(name), (), time)


def result_after(pipeline: Pipeline, name: str, journal: Journal, batch: int) -> Open:
    """Return what opens a result with `history` as a batch left it, however long ago. Raises `WrongUsage`."""
    _check_kept(pipeline, name, journal, batch, f"--as-of-batch {batch}")
    return partial(_after, pipeline.keyed_spec(name), batch, journal.plans[batch - 1].planned_at)


def _check_kept(pipeline: Pipeline, name: str, journal: Journal, batch: int, asked: str) -> None:
    """Refuse to say what a result was after a batch that did not keep its history."""
    if batch and not kept_history(pipeline, journal, name, batch):
        raise WrongUsage(
            f"{asked}: batch {batch} was run without the history of {name}, and what it had then is not known"
        )


def _shown(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S%z}"


def _history(join: ResultSpec, state: State) -> View:
    rows = state.history(join)
    return view_by_key(
        shown_name(history_of(join.name)), rows, join.joined_key, F.col(VALID_FROM), named(BATCH)
    )


def _at(join: ResultSpec, sides: Collection[TableSpec], time: datetime, state: State) -> View:
    """`sides`: of a join whose history goes by event time."""
    versions, plan = state.history(join), state.plan
    first = forgotten_rows(plan, join.name, sides) if sides else plan.forgotten(history_of(join.name))
    _check_known(join, versions, first, time, f"--as-of {_shown(time)}")
    return _rows(join, versions, valid_at(instant(time), F.col(VALID_FROM), F.col(VALID_TO)))


def _after(join: ResultSpec, batch: int, time: datetime, state: State) -> View:
    versions = state.history(join)
    forgotten = state.plan.forgotten(history_of(join.name))
    _check_known(join, versions, forgotten, time, f"--as-of-batch {batch}")
    there = (named(BATCH) <= batch) & (F.col(UNTIL).isNull() | (F.col(UNTIL) > batch))
    return _rows(join, versions, there)


def _rows(join: ResultSpec, versions: DataFrame, which: Column) -> View:
    return view_by_key(join.name, versions.where(which).drop(*own_columns(join), UNTIL), join.joined_key)


def _check_known(
    join: ResultSpec, versions: DataFrame, forgotten: datetime | None, time: datetime, asked: str
) -> None:
    """Refuse to say what a result was before its history began, or when versions of then are removed already.

    `forgotten`: the time before which they are.
    """
    begun = from_micros(aggregated(versions, F.unix_micros(F.min(VALID_FROM)).alias("begun"))["begun"])
    first = latest(begun, forgotten)
    if first is None or time < first:
        since = f"begins {_shown(first)}" if first else "has no row yet"
        raise WrongUsage(f"{asked} is before what is known of {join.name}: its history {since}")
