"""Lists the files below a directory that a pattern may match, without the folders of days that are not wanted."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from pyarrow import fs

from storage.errors import SourceRefused
from storage.filesystem import reading
from storage.sources.path_patterns import Numbers, is_beyond, match_part


@dataclass(frozen=True)
class Days:
    """The days whose directories are listed."""

    first: date | None
    last: date | None


def walk(
    system: fs.FileSystem, directory: str, parts: tuple[str, ...], days: Days, known: Numbers
) -> Iterator[fs.FileInfo]:
    """Yield files below a directory, one level of a pattern after the other, some perhaps twice.

    `known`: what the levels above stand for. Raises `SourceRefused` for a symlink, and for a name that is no text.
    """
    part, rest = parts[0], parts[1:]
    deep = part == "**"
    if deep:
        yield from walk(system, directory, rest, days, known)
    with reading(directory):
        infos = system.get_file_info(fs.FileSelector(directory))
    for info in infos:
        name = _name(info, directory)
        numbers = None if is_skipped(name) else known if deep else match_part(part, name, known)
        if numbers is None:
            continue
        _refuse_symlink(system, info)
        if info.type == fs.FileType.Directory and (deep or rest):
            if not is_beyond(numbers, days.first, days.last):
                yield from walk(system, info.path, parts if deep else rest, days, numbers)
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


def is_skipped(name: str) -> bool:
    """Tell whether files of such a name are never read: hidden ones, and those that are still written."""
    return name.startswith((".", "_")) or name.endswith((".tmp", "._COPYING_"))
