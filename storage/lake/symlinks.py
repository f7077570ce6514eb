"""Refuses symbolic links that lead out of a lake, for what is read and written there is not the lake's."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from lakejoin.storage.errors import LakeUnusable
from lakejoin.storage.lake.layout import Lake

_KINDS = ("tables", "streams", "joins")
_LOG = "_delta_log"


def check_links(lake: Lake) -> None:
    """See that no folder of a table, nor one above it, is a link that leads out of the lake.

    The lake's own directory may be a link, and so may anything within it that stays there. A few folders are listed,
    none of data files, and nothing at a URI. Raises `LakeUnusable`.
    """
    if lake.local is None:
        return
    root = os.path.realpath(lake.local)
    for path in _links(str(lake.local)):
        place = os.path.realpath(path)
        if os.path.commonpath([root, place]) != root:
            raise LakeUnusable(
                f"{path}: is a symbolic link to {place}, out of the lake {lake.root}; expected a folder of the lake. "
                "Nothing was read or written there. Put what belongs to the lake in the place of the link, or remove "
                "it; to keep the lake elsewhere, move the whole of it and point `lake` there"
            )


def _links(root: str) -> Iterator[str]:
    """Links among the folders of tables, those above them, and the folders of their logs."""
    for entry in _entries(root):
        if entry.name not in _KINDS:
            yield from _of_table(entry)
            continue
        if entry.is_symlink():
            yield entry.path
        for declared in _entries(entry.path):
            if declared.is_symlink():
                yield declared.path
            for table in _entries(declared.path):
                yield from _of_table(table)


def _of_table(folder: "os.DirEntry[str]") -> Iterator[str]:
    if folder.is_symlink():
        yield folder.path
    if (log := Path(folder.path, _LOG)).is_symlink():
        yield str(log)


def _entries(folder: str) -> "list[os.DirEntry[str]]":
    """What is in a folder; nothing where there is none, or where it may not be read, which is said when it is."""
    with suppress(OSError), os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: entry.name)
    return []
