"""Lists the files below a directory that a pattern may match, without the folders of days that are not wanted.

A folder of this machine is not held in memory, whatever it has: its files pass one by one. Of an object store Arrow
gives the whole of a folder at once.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple, Protocol

from pyarrow import fs

from lakejoin.storage.errors import SourceRefused
from lakejoin.storage.filesystem import reading
from lakejoin.storage.sources.files.path_patterns import Numbers, is_beyond, match_part


@dataclass(frozen=True)
class Days:
    """The days whose directories are listed."""

    first: date | None
    last: date | None


class ListedFile(NamedTuple):
    """A file as its directory has it."""

    path: str
    size: int
    modified: int
    """Nanoseconds since 1970."""
    numbers: Numbers
    """What the levels of the pattern stand for, as `walk` went through them."""


class _Entry(Protocol):
    """What a directory has under a name; `os.DirEntry` is one."""

    @property
    def path(self) -> str: ...
    @property
    def name(self) -> str: ...
    def is_symlink(self) -> bool: ...
    def is_dir(self, *, follow_symlinks: bool) -> bool: ...
    def is_file(self, *, follow_symlinks: bool) -> bool: ...


@dataclass(frozen=True)
class _Stored:
    """What an object store has."""

    info: fs.FileInfo

    @property
    def path(self) -> str:
        return self.info.path  # type: ignore[no-any-return]

    @property
    def name(self) -> str:
        return self.info.base_name  # type: ignore[no-any-return]

    def is_symlink(self) -> bool:
        return False

    def is_dir(self, *, follow_symlinks: bool) -> bool:
        return self.info.type == fs.FileType.Directory and not follow_symlinks

    def is_file(self, *, follow_symlinks: bool) -> bool:
        return self.info.type == fs.FileType.File and not follow_symlinks


def walk(
    system: fs.FileSystem, directory: str, parts: tuple[str, ...], days: Days, known: Numbers
) -> Iterator[ListedFile]:
    """Yield files below a directory, those of one directory after the other, some perhaps twice.

    `known`: what the levels above stand for. Raises `SourceRefused` for a symlink, and for a name that is no text.
    """
    part, rest = parts[0], parts[1:]
    deep = part == "**"
    if deep:
        yield from walk(system, directory, rest, days, known)
    below: list[tuple[str, Numbers]] = []
    for entry, numbers in _matching(system, directory, part, known):
        if deep or rest:
            if entry.is_dir(follow_symlinks=False) and not is_beyond(numbers, days.first, days.last):
                below.append((entry.path, numbers))
        elif entry.is_file(follow_symlinks=False) and (file := _listed(entry, numbers)):
            yield file
    for path, numbers in below:
        yield from walk(system, path, parts if deep else rest, days, numbers)


def _matching(
    system: fs.FileSystem, directory: str, part: str, known: Numbers
) -> Iterator[tuple[_Entry, Numbers]]:
    """Yield what a level of a pattern may mean, and what all levels up to it stand for."""
    for entry in _entries(system, directory):
        name = _name(entry, directory)
        numbers = None if is_skipped(name) else known if part == "**" else match_part(part, name, known)
        if numbers is None:
            continue
        if entry.is_symlink():
            raise SourceRefused(
                f"{entry.path}: is a symlink, which may lead anywhere; put the file itself here"
            )
        yield entry, numbers


def _entries(system: fs.FileSystem, directory: str) -> Iterator[_Entry]:
    with reading(directory):
        if isinstance(system, fs.LocalFileSystem):
            with os.scandir(directory) as found:
                yield from found
        else:
            yield from map(_Stored, system.get_file_info(fs.FileSelector(directory)))


def _listed(entry: _Entry, numbers: Numbers) -> ListedFile | None:
    """The file with its size and time; None for one that is gone meanwhile."""
    if isinstance(entry, _Stored):
        return ListedFile(entry.path, entry.info.size, entry.info.mtime_ns, numbers)
    assert isinstance(entry, os.DirEntry)
    try:
        found = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError:
        with reading(entry.path):
            raise
    return ListedFile(entry.path, found.st_size, found.st_mtime_ns, numbers)


def _name(entry: _Entry, directory: str) -> str:
    try:
        name = entry.name
        name.encode()
    except (UnicodeEncodeError, UnicodeDecodeError) as error:
        raw = os.fsencode(error.object)
        raise SourceRefused(
            f"{directory}: holds a name that is not UTF-8 ({raw!r}); rename it, or move it elsewhere"
        ) from error
    return name


def is_skipped(name: str) -> bool:
    """Tell whether files of such a name are never read: hidden ones, and those that are still written."""
    return name.startswith((".", "_")) or name.endswith((".tmp", "._COPYING_"))
