"""Delta tables as sources: the versions that wait, taken as a plan takes parts of files, and never cut within one."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby

from orchestration.config import Input
from storage.lake.plan import PlannedFile
from storage.sources.change_data_feed_log import FEED, Feed, FeedVersion
from storage.sources.files import FoundFile


def unread_versions(table: Input, known: PlannedFile | None) -> list[PlannedFile]:
    """The versions of a table's source behind the last one that was planned, each as a part of its own.

    Raises `SourceError` for a feed that cannot be followed.
    """
    feed = Feed(table.source.place)
    versions = (
        [feed.whole()] if known is None else feed.after(known.to_line, known.fingerprint, known.modified)
    )
    return [_part(table, version) for version in versions]


def waiting_versions(table: Input, known: PlannedFile | None) -> list[FoundFile]:
    """The same as a listing of files has them, without those that changed no row."""
    return [
        FoundFile(part.path, f"version {part.to_line}", None, 0, part.modified)
        for part in unread_versions(table, known)
        if part.records
    ]


def _part(table: Input, version: FeedVersion) -> PlannedFile:
    return PlannedFile(
        table=table.name, path=table.source.place, name=FEED, date=None, size=0, modified=version.modified,
        fingerprint=version.identity, lines=version.records, complete=True, from_line=version.after,
        to_line=version.number,
    )  # fmt: skip


def check_feed(part: PlannedFile, *, thoroughly: bool) -> None:
    """Refuse a range of versions that is no longer what was planned. Raises `SourceError`.

    `thoroughly`: see that all it needs is still there, and not only that the table is the same.
    """
    feed = Feed(part.path)
    if thoroughly or feed.identity != part.fingerprint:
        feed.check_range(part.from_line, part.to_line, part.fingerprint, part.modified)


def versions_between(parts: Iterable[PlannedFile], start: int, end: int) -> Iterable[PlannedFile]:
    """The versions that end behind the first `start` records of all, and not behind the first `end`.

    `start` -1 takes those at the beginning as well that changed no row.
    """
    passed = 0
    for part in parts:
        passed += part.records
        if start < passed <= end:
            yield part


def together(parts: Sequence[PlannedFile]) -> tuple[PlannedFile, ...]:
    """Put the versions of each table that follow each other into one range, which is what a plan holds."""
    found: list[PlannedFile] = []
    for is_feed, run in groupby(parts, lambda part: part.is_feed):
        if not is_feed:
            found += run
            continue
        for _, versions in groupby(run, lambda part: part.table):
            first, *rest = versions
            for part in rest:
                first = replace(part, from_line=first.from_line, lines=first.lines + part.lines)
            found.append(first)
    return tuple(found)
