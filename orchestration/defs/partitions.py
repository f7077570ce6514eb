"""Defines the daily partitions of a pipeline with dated sources, and reads those that a run was started for."""

from collections.abc import Iterable
from datetime import date, datetime, timedelta

from dagster import AssetExecutionContext, DailyPartitionsDefinition

from lakejoin.orchestration.config import Input, Pipeline
from lakejoin.storage.errors import LakejoinError
from lakejoin.storage.sources.files.path_patterns import has_day
from lakejoin.storage.sources.files.source_files import each_file

REACH = timedelta(days=366)
"""How far ahead a file's day may be to be a partition: Dagster goes through all days up to it, again and again."""
LIVE = timedelta(days=31)
"""A source whose newest file is younger than this will have more: its partitions grow with the clock."""


def is_dated(pipeline: Pipeline) -> bool:
    """Whether a source of the pipeline has a file, or files, for each day."""
    return any(_has_date(table) for table in pipeline.inputs.values())


def daily_partitions(pipeline: Pipeline, now: datetime) -> DailyPartitionsDefinition | None:
    """One partition a day of the dated sources; None for a pipeline without any.

    They begin with `start` or the first file found. They end with the last file found or, while the source is
    live, with today; unlike Dagster's own default the day that is not over yet can be materialised too.
    """
    if not is_dated(pipeline):
        return None
    today = now.date()
    days = [_days(table, now) for table in pipeline.inputs.values() if _has_date(table)]
    first = min((source[0] for source in days if source), default=today)
    last = max((source[-1] for source in days if source), default=today)
    live = today - last < LIVE
    return DailyPartitionsDefinition(
        start_date=first.isoformat(),
        end_date=None if live else (last + timedelta(days=1)).isoformat(),
        end_offset=max(1, (last - today).days + 1),
        timezone="UTC",
    )


def names_partitions(context: AssetExecutionContext) -> bool:
    """Whether a run was started for a day or for a range of days: Dagster marks the two in different ways."""
    return bool(context.has_partition_key or context.has_partition_key_range)


def dates_of_run(context: AssetExecutionContext) -> tuple[date, date] | None:
    """The days, inclusive, that a run is to work off; None for everything that is pending."""
    if not names_partitions(context):
        return None
    keys = context.partition_key_range
    return date.fromisoformat(keys.start), date.fromisoformat(keys.end)


def _has_date(table: Input) -> bool:
    return has_day(table.source.path)


def _days(table: Input, now: datetime) -> list[date]:
    """Days that a source has, sorted: `start` where declared, and those of its files from then on.

    A source that cannot be listed has no files: the assets are shown all the same; a run says what is wrong.
    """
    try:
        found = each_file(table.source.path, settle=timedelta(0), now=now, since=table.source.first_day)
        listed = {file.date for file in found}
    except (LakejoinError, OSError):
        listed = set()
    start = table.source.first_day
    days = {day for day in listed if day is not None and (start is None or start <= day)}
    return sorted(within_reach(days | {start} if start else days, now))


def within_reach(days: Iterable[date], now: datetime) -> list[date]:
    """The days that can be partitions. What is dated later is left to runs without partitions."""
    return [day for day in days if day <= now.date() + REACH]
