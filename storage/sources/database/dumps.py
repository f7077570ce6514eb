"""Finds the dumps that were taken of a query: folders of Parquet files, each named by the time it was taken.

A dump is whole once its folder has the file that Spark writes last; others were cut off.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from pyarrow import fs

from lakejoin.storage.filesystem import open_file_system, reading
from lakejoin.storage.sources.files.path_patterns import FilePattern, fixed
from lakejoin.storage.sources.files.source_files import FoundFile

DUMPS = "_dumps"
"""Folder of a lake with the dumps of its tables, in a folder for each."""
_TIME = "%Y%m%dT%H%M%S%fZ"
_LAST = "_SUCCESS"
_ENDING = ".parquet"


@dataclass(frozen=True)
class Dump:
    """The rows that a query gave at a time."""

    name: str
    files: tuple[FoundFile, ...]
    is_whole: bool

    @property
    def taken(self) -> datetime:
        """When it was begun."""
        return time_of(self.name)


def pattern_of(folder: str) -> str:
    """The pattern of the files of the dumps in a folder, by which they are snapshots."""
    return f"{fixed(folder)}/*/*{_ENDING}"


def folder_of(pattern: str) -> str:
    """The folder that a pattern was made of."""
    return FilePattern.parse(pattern).directory


def name_of(time: datetime) -> str:
    """What a dump is called that is taken at a time: names sort as times do."""
    return time.astimezone(UTC).strftime(_TIME)


def time_of(name: str) -> datetime:
    """When a dump of this name was taken, or that a file of such a name is of."""
    return datetime.strptime(name.partition("/")[0], _TIME).replace(tzinfo=UTC)


def dumps(folder: str) -> list[Dump]:
    """List the dumps in a folder, the oldest first; a folder that is not there has none. Raises `SourceUnreadable`."""
    system, root = open_file_system(folder)
    start, found = len(root.rstrip("/")) + 1, dict[str, list[fs.FileInfo]]()
    with reading(folder):
        infos = system.get_file_info(fs.FileSelector(root, recursive=True, allow_not_found=True))
    for info in infos:
        name, _, file = info.path[start:].partition("/")
        if _is_name(name):
            found.setdefault(name, []).extend([info] if file else [])
    return [_dump(folder, start, name, found[name]) for name in sorted(found)]


def remove(folder: str, unwanted: Iterable[Dump]) -> None:
    """Remove dumps; from the first moment on none of them is whole any more. Raises `SourceUnreadable`."""
    system, root = open_file_system(folder)
    with reading(folder):
        for dump in unwanted:
            place = f"{root}/{dump.name}"
            if dump.is_whole:
                system.delete_file(f"{place}/{_LAST}")
            system.delete_dir(place)


def _dump(folder: str, start: int, name: str, infos: list[fs.FileInfo]) -> Dump:
    files = [
        FoundFile(
            f"{folder.rstrip('/')}/{info.path[start:]}", info.path[start:], None, info.size, info.mtime_ns
        )
        for info in infos
        if info.path[start:].count("/") == 1
        and info.path.endswith(_ENDING)
        and not info.base_name.startswith(".")
    ]
    is_whole = any(info.path[start:] == f"{name}/{_LAST}" for info in infos)
    return Dump(name, tuple(sorted(files, key=lambda file: file.name)), is_whole)


def _is_name(name: str) -> bool:
    try:
        time_of(name)
    except ValueError:
        return False
    return True
