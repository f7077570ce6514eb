"""Finds the files of a source, and says what is known of a file.

A file is known by its name below the fixed directory of its source, so that a lake does not depend on the
machine. What was read is recognised by size and time, and when these differ by a fingerprint of its bytes:
lines may be added behind it, nothing before that may change. The errors are in `storage.errors`.
"""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from pyarrow import fs

from storage.errors import SourceChanged, SourceNotFound, SourceRefused
from storage.filesystem import file_info, is_local, open_file_system, reading
from storage.sources.path_patterns import FilePattern, Numbers, day_text, is_beyond, match_part, plain


@dataclass(frozen=True)
class FoundFile:
    """A file as it was listed."""

    path: str
    """Absolute, or a URI as Spark takes it."""
    name: str
    """Relative to the fixed directory of the source; behind its hour where the path has `{hour}`."""
    date: date | None
    size: int
    modified: int
    """Nanoseconds since 1970."""


@dataclass(frozen=True)
class MeasuredFile(FoundFile):
    """A file as it was read through."""

    fingerprint: str
    lines: int
    """Records that positions count: lines of text, records of CSV without the header, rows of Parquet."""
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


@dataclass(frozen=True)
class _Days:
    """The days whose directories are listed."""

    first: date | None
    last: date | None


def find_files(
    path: str,
    *,
    settle: timedelta,
    now: datetime,
    since: date | None = None,
    until: date | None = None,
) -> list[FoundFile]:
    """List the files of a source, sorted by date and name.

    `path` may hold fields such as `{date}` and wildcards; a directory stands for all files below it. Files that changed less
    than `settle` before `now` are left out; so is what is hidden, begins with `_` or ends in `.tmp`. Directories of
    days before `since` or after `until` are not listed: years of them would cost a request each. Raises
    `SourceNotFound` where the fixed part of the path is missing, and `SourceRefused` for a symlink, a day or hour
    that is none or a name that Hadoop cannot read.
    """
    pattern = _pattern(path)
    system, root = open_file_system(pattern.directory)
    found, days = [], _Days(since, until)
    for info in {info.path: info for info in _walk(system, root, pattern.parts, days, {})}.values():
        name = info.path[len(root.rstrip("/")) + 1 :]
        numbers = pattern.match(name)
        if numbers is not None and has_settled(info.mtime_ns, settle, now):
            full = f"{pattern.directory.rstrip('/')}/{name}"
            found.append(_found(full, _known_as(name, numbers, full), _date(numbers, full), info))
    return sorted(found, key=lambda file: (file.date or date.min, file.name))


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
    if _is_skipped(name):
        raise SourceRefused(
            f"{plain(path)}: a name that begins with `.` or `_` or ends in `.tmp` is never read; rename it"
        )
    return FilePattern(directory or "/", (name,))


def _walk(
    system: fs.FileSystem, directory: str, parts: tuple[str, ...], days: _Days, known: Numbers
) -> Iterator[fs.FileInfo]:
    """Files below a directory, one level of the pattern after the other; `known`: what the levels above stand for."""
    part, rest = parts[0], parts[1:]
    deep = part == "**"
    if deep:
        yield from _walk(system, directory, rest, days, known)
    with reading(directory):
        infos = system.get_file_info(fs.FileSelector(directory))
    for info in infos:
        name = _name(info, directory)
        numbers = None if _is_skipped(name) else known if deep else match_part(part, name, known)
        if numbers is None:
            continue
        _refuse_symlink(system, info)
        if info.type == fs.FileType.Directory and (deep or rest):
            if not is_beyond(numbers, days.first, days.last):
                yield from _walk(system, info.path, parts if deep else rest, days, numbers)
        elif info.type == fs.FileType.File and not (deep or rest):
            yield info


def _name(info: fs.FileInfo, directory: str) -> str:
    try:
        name: str = info.base_name
    except UnicodeDecodeError as error:
        raise SourceRefused(
            f"{directory}: holds a name that is not UTF-8 ({error.object!r}); rename it, or move it elsewhere"
        ) from error
    return name


def _refuse_symlink(system: fs.FileSystem, info: fs.FileInfo) -> None:
    if isinstance(system, fs.LocalFileSystem) and Path(info.path).is_symlink():
        raise SourceRefused(f"{info.path}: is a symlink, which may lead anywhere; put the file itself here")


def _is_skipped(name: str) -> bool:
    return name.startswith((".", "_")) or name.endswith((".tmp", "._COPYING_"))


def _date(numbers: Numbers, path: str) -> date | None:
    if ":" in path.rpartition("/")[2]:
        raise SourceRefused(f"{path}: Hadoop reads no file with a colon in its name; rename it")
    text = day_text(numbers)
    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise SourceRefused(
            f"{path}: {text} is no day, which the placeholders of its path stand for; rename the file"
        ) from error


def _known_as(name: str, numbers: Numbers, path: str) -> str:
    """The name by which a lake knows a file: it orders the files of a day."""
    hour = numbers.get("hour")
    if hour is None:
        return name
    if hour not in range(24):
        raise SourceRefused(
            f"{path}: {hour} is no hour from 0 to 23, which {{hour}} stands for; rename the file"
        )
    return f"{hour:02}/{name}"
