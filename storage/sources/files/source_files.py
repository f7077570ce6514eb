"""Finds the files of a source, and says what is known of a file.

A file is known by its name below the fixed directory of its source, so that a lake does not depend on the
machine. What was read is recognised by size and time, and when these differ by a fingerprint of its bytes:
lines may be added behind it, nothing before that may change. The errors are in `storage.errors`.
"""

import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from operator import attrgetter
from pathlib import Path

from pyarrow import fs

from lakejoin.storage.errors import SourceChanged, SourceNotFound, SourceRefused
from lakejoin.storage.filesystem import file_info, is_local, open_file_system
from lakejoin.storage.sources.files.file_listing import Days, ListedFile, is_skipped, walk
from lakejoin.storage.sources.files.file_names import FileOrder, known_as, without_keys
from lakejoin.storage.sources.files.path_patterns import (
    FilePattern,
    Numbers,
    day_of,
    fixed,
    has_hour,
    plain,
)


@dataclass(frozen=True)
class FoundFile:
    """A file as it was listed."""

    path: str
    """Absolute, or a URI as Spark takes it."""
    name: str
    """Relative to the fixed directory of the source, as `storage.sources.files.file_names.known_as` says."""
    date: date | None
    size: int
    modified: int
    """Nanoseconds since 1970."""


@dataclass(frozen=True)
class MeasuredFile(FoundFile):
    """A file as it was read through."""

    fingerprint: str
    lines: int
    """Records that positions count: lines of text, records of CSV without the header, rows of Parquet, Avro and ORC."""
    complete: bool
    """Whether the last line has its end, so that more lines may follow."""
    stray_quotes: bool = False
    """Of CSV: as in `Counted`."""
    returns: bool = False
    """Of CSV: as in `FileContent`."""


@dataclass(frozen=True)
class Counted:
    """What was counted of a CSV file."""

    records: int
    stray_quotes: bool = False
    """A quoted field holds a quote that is not doubled."""


Dates = tuple[date, date]
"""The first and the last of some days."""


def find_files(
    path: str,
    *,
    settle: timedelta,
    now: datetime,
    since: date | None = None,
    until: date | None = None,
    order: FileOrder | None = None,
) -> list[FoundFile]:
    """List the files of a source as `each_file` does, sorted by date and name."""
    found = each_file(path, settle=settle, now=now, since=since, until=until, order=order)
    return sorted(found, key=by_day_and_name)


def by_day_and_name(file: FoundFile) -> tuple[date, str]:
    """The order in which files are read."""
    return file.date or date.min, file.name


def each_file(
    path: str,
    *,
    settle: timedelta,
    now: datetime,
    since: date | None = None,
    until: date | None = None,
    order: FileOrder | None = None,
) -> Iterator[FoundFile]:
    """Yield the files of a source, in any order; what passed is not kept, but names that may be met again.

    `path` may hold fields such as `{date}`, and wildcards; a directory stands for all files below it. Files that
    changed less than `settle` before `now` are left out; so is what is hidden, begins with `_` or ends in `.tmp`, and
    what Kafka Connect wrote beside its values. Directories of days before `since` or after `until` are not listed:
    years of them would cost a request each. Raises `SourceNotFound` where the fixed part of the path is missing, and
    `SourceRefused` for a symlink, a day or hour that is none, two files with one name or a name that Hadoop cannot
    read.
    """
    pattern, days = _pattern(path), Days(since, until)
    settled = partial(has_settled, settle=settle, now=now)
    if order != "number":  # each name is a path
        return _each(pattern, days, order, settled)
    return _with_own_names(partial(_each, pattern, days, order, settled))


def _each(
    pattern: FilePattern, days: Days, order: FileOrder | None, settled: Callable[[int], bool]
) -> Iterator[FoundFile]:
    system, root = open_file_system(pattern.directory)
    start, directory = len(root.rstrip("/")) + 1, pattern.directory.rstrip("/")
    listed = walk(system, root, pattern.parts, days, {})
    if pattern.parts.count("**") > 1:
        listed = _matched_once(listed, pattern, start)
    first: tuple[str, SourceRefused] | None = None
    for path, size, modified, numbers in without_keys(listed, attrgetter("path")):
        if not settled(modified):
            continue
        name = path[start:]
        full = f"{directory}/{name}"
        try:
            known, day = known_as(name, pattern, numbers, order), _date(numbers, full)
        except SourceRefused as error:  # the same one is told, in whatever order they are listed
            first = (name, error) if first is None or name < first[0] else first
            continue
        yield FoundFile(full, known, day, size, modified)
    if first is not None:
        raise first[1]


def _matched_once(files: Iterable[ListedFile], pattern: FilePattern, start: int) -> Iterator[ListedFile]:
    """Yield files to which several ways lead once, with what the whole pattern says of their names."""
    for path, file in {file.path: file for file in files}.items():
        numbers = pattern.match(path[start:])
        if numbers is not None:
            yield file._replace(numbers=numbers)


def _with_own_names(listing: Callable[[], Iterator[FoundFile]]) -> Iterator[FoundFile]:
    """Refuse two files that a lake would know by one name. Of names that passed hashes are kept."""
    passed = set[int]()
    for file in listing():
        name = hash(file.name)
        if name in passed:
            first, *others = sorted(other.path for other in listing() if other.name == file.name)
            if others:
                raise SourceRefused(
                    f"{others[0]}: has the same numbers in its name as {first}, so that nothing orders the two; "
                    "rename one"
                )
        passed.add(name)
        yield file


def names_now(
    path: str, files: Iterable[tuple[str, str]], order: FileOrder | None
) -> Iterator[tuple[str, str]]:
    """Yield, for files that a lake knows, the name that it has and the one by which they would be known now.

    `files`: their paths, which may be of a folder that has moved since, and their names.
    """
    pattern = _pattern(path)
    for where, known in files:
        levels = known.count("/") + 1 - has_hour(path)
        name = "/".join(where.split("/")[-levels:])
        numbers = pattern.match(name)
        if numbers is not None:
            yield known, known_as(name, pattern, numbers, order)


def has_settled(modified: int, settle: timedelta, now: datetime) -> bool:
    """Whether a file that last changed then, in nanoseconds since 1970, was left alone for so long."""
    return not settle or datetime.fromtimestamp(modified / 1e9, UTC) <= now - settle


def stat_file(path: str, name: str, day: date | None) -> FoundFile:
    """Look at one file that is known already. Raises `SourceNotFound`."""
    return _found(path, name, day, file_info(path))


def changed(found: FoundFile, what: str) -> SourceChanged:
    """The error of a file whose content is no longer what was read; `what` says how one sees it."""
    return SourceChanged(
        f"{found.path}: changed after it was read: {what}. Expected the same bytes, at most with whole lines "
        f"added behind them. Put the old file back, and give the new content another name; or, to take it in the place "
        f"of the old: `lakejoin run FILE --replace {found.date or shlex.quote(found.name)}`."
    )


def _found(path: str, name: str, day: date | None, info: fs.FileInfo) -> FoundFile:
    return FoundFile(path, name, day, info.size, info.mtime_ns)


def _pattern(path: str) -> FilePattern:
    pattern = FilePattern.parse(path if not is_local(path) else str(Path(path).absolute()))
    info = file_info(pattern.directory)
    if info.type == fs.FileType.Directory:
        return pattern if pattern.parts else replace(pattern, parts=("**", "*"))
    if pattern.parts:
        raise SourceNotFound(f"{pattern.directory}: is no directory; {plain(path)} looks for files in it")
    directory, _, name = pattern.directory.rpartition("/")
    if is_skipped(name):
        raise SourceRefused(
            f"{plain(path)}: a name that begins with `.` or `_` or ends in `.tmp` is never read; rename it"
        )
    return FilePattern(directory or "/", (fixed(name),))


def _date(numbers: Numbers, path: str) -> date | None:
    if ":" in path.rpartition("/")[2]:
        raise SourceRefused(f"{path}: Hadoop reads no file with a colon in its name; rename it")
    try:
        return day_of(numbers)
    except ValueError as error:
        raise SourceRefused(
            f"{path}: {error}, which the placeholders of its path stand for; rename the file"
        ) from error
