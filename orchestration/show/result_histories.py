"""Opens the history of a result for `show`: its versions, or the rows that it had after a batch or at a time."""

from datetime import datetime
from functools import partial

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from orchestration.config import Pipeline
from orchestration.errors import WrongUsage
from orchestration.lake_state.config_fingerprints import kept_history
from orchestration.show.frame_view import Open, View, view_by_key
from storage.lake.journal import Journal
from storage.lake.layout import history_of, shown_name
from storage.spark.kept_frames import aggregated
from storage.state.pinned_state import State
from transforms.foreign_key_join.history import UNTIL, own_columns
from transforms.model.event_time import from_micros, instant
from transforms.model.result_spec import ResultSpec
from transforms.model.schemas import BATCH, VALID_FROM, VALID_TO, named


def history_views(join: ResultSpec) -> dict[str, Open]:
    """Return what can be shown of a result's history, by name; nothing where it is not kept."""
    return {} if join.history is None else {shown_name(history_of(join.name)): partial(_history, join)}


def result_at(pipeline: Pipeline, name: str, journal: Journal, time: datetime) -> Open:
    """Return what opens a result with `history` as it was at a time, by the batches' clock. Raises `WrongUsage`."""
    before = [plan.batch for plan in journal.plans if plan.planned_at <= time]
    _check_kept(pipeline, name, journal, min(len(before), len(journal.published)), f"--as-of {_shown(time)}")
    return partial(_at, pipeline.keyed_spec(name), time)


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


def _at(join: ResultSpec, time: datetime, state: State) -> View:
    at = instant(time)
    versions = state.history(join)
    _check_known(join, state, versions, time, "--as-of", _shown(time))
    valid = (F.col(VALID_FROM) <= at) & (F.col(VALID_TO).isNull() | (at < F.col(VALID_TO)))
    return _rows(join, versions, valid)


def _after(join: ResultSpec, batch: int, time: datetime, state: State) -> View:
    versions = state.history(join)
    _check_known(join, state, versions, time, "--as-of-batch", str(batch))
    there = (named(BATCH) <= batch) & (F.col(UNTIL).isNull() | (F.col(UNTIL) > batch))
    return _rows(join, versions, there)


def _rows(join: ResultSpec, versions: DataFrame, which: Column) -> View:
    return view_by_key(join.name, versions.where(which).drop(*own_columns(join), UNTIL), join.joined_key)


def _check_known(
    join: ResultSpec, state: State, versions: DataFrame, time: datetime, option: str, asked: str
) -> None:
    """Refuse to say what a result was before its history began, or when versions of then are removed already."""
    begun = from_micros(aggregated(versions, F.unix_micros(F.min(VALID_FROM)).alias("begun"))["begun"])
    forgotten = state.plan.floors.get(history_of(join.name))
    bounds = [begun, datetime.fromisoformat(forgotten) if forgotten else None]
    first = max((bound for bound in bounds if bound is not None), default=None)
    if first is None or time < first:
        since = f"begins {_shown(first)}" if first else "has no row yet"
        raise WrongUsage(f"{option} {asked} is before what is known of {join.name}: its history {since}")
