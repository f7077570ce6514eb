"""Groups the files of a source of snapshots: those that are together the whole table at one time.

They are the files of one day, or of one hour, where the path has those; else those of one folder, where the path has
wildcards for folders; else each file is one. A version of a Delta table is one.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date

from lakejoin.storage.errors import SourceChanged, SourceRefused
from lakejoin.storage.sources.files.path_patterns import FilePattern, has_hour
from lakejoin.storage.sources.planned.planned_file import FEED, PlannedFile, end_of


def snapshot_of(path: str, part: PlannedFile) -> str:
    """The snapshot that a part belongs to: a day, an hour, a folder, or the name of the file. `path`: as declared."""
    if part.date is not None:
        hour = part.name.partition("/")[0]
        return f"{part.date} {hour}:00" if has_hour(path) else part.date.isoformat()
    if part.name == FEED:
        return f"version {part.to_line}"
    folders = FilePattern.parse(path).parts[:-1]
    return part.name.rpartition("/")[0] if folders else part.name


def snapshots(path: str, parts: Iterable[PlannedFile]) -> list[list[PlannedFile]]:
    """The parts of a source, in the order of their positions, by snapshot."""
    found: dict[str, list[PlannedFile]] = {}
    for part in parts:
        found.setdefault(snapshot_of(path, part), []).append(part)
    return list(found.values())


def check_new(path: str, parts: Sequence[PlannedFile], known: Mapping[str, PlannedFile]) -> None:
    """Refuse parts that are no whole new snapshots. `known`: what was read before, by name.

    Raises `SourceRefused` where files of one folder may be one snapshot or many, and `SourceChanged` for what was added
    to a snapshot that was read, and for one that is older than that.
    """
    first = next(iter(parts), None)
    if first is None or first.name == FEED:
        return
    if not FilePattern.parse(path).parts and len({*known, *[part.name for part in parts]}) > 1:
        raise SourceRefused(
            f"{path}: has several files, and nothing says whether they are one snapshot or many. Expected a path with "
            "`{date}` (all files of a day are one), with wildcards for names (`dumps/*.csv`: each file is one), or for "
            "folders (`dumps/*/*.csv`: all files of a folder are one)"
        )
    read = {snapshot_of(path, part) for part in known.values()}
    last = max((_place(part) for part in known.values()), default=None)
    for part in parts:
        name = snapshot_of(path, part)
        if part.from_line or name in read:
            raise SourceChanged(
                f"{part.path}: belongs to the snapshot {name}, which was read without {_what(part)}. Expected whole "
                "snapshots: give the whole of it another, later name; so that none is read half written, declare "
                "`settle`, or write it elsewhere and move it here"
            )
        if last is not None and _place(part) < last:
            raise SourceChanged(
                f"{part.path}: the snapshot {name} is older, by its day and name, than {last[1]}, which was read. What "
                "it says is no longer so: move it elsewhere, or give it a later name if it is new"
            )


def last_place(known: Mapping[str, PlannedFile]) -> tuple[date | None, str, int]:
    """The position of the last record of what was read of a source. `known`: by name; there is some."""
    part = max(known.values(), key=_place)
    return end_of(part) if part.name == FEED else (part.date, part.name, part.to_line)


def _what(part: PlannedFile) -> str:
    return f"its lines behind {part.from_line}" if part.from_line else "it"


def _place(part: PlannedFile) -> tuple[date, str]:
    return (part.date or date.min, part.name)
