"""Finds and removes what interrupted large batches left in `_scratch`: files that nothing else reads."""

import shutil
from datetime import datetime, timedelta

from pyarrow import fs

from lakejoin.storage.delta_log.snapshot import reading_table
from lakejoin.storage.filesystem import open_file_system
from lakejoin.storage.lake.layout import SCRATCH, Lake

LONGEST_BATCH = timedelta(days=1)
"""In a lake at a URI, where a lease may end before its run, younger files may belong to a batch that runs."""


def leftovers(lake: Lake, now: datetime) -> list[fs.FileInfo]:
    """List the files that may be removed; the caller holds the lake for writing, so that no batch runs."""
    system, path = open_file_system(lake.path(SCRATCH))
    with reading_table(lake.path(SCRATCH)):
        found = system.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True))
    files = [file for file in found if file.type == fs.FileType.File]
    running = lake.local is None and any(now - file.mtime < LONGEST_BATCH for file in files)
    return [] if running else files


def clear(lake: Lake) -> None:
    """Remove what `leftovers` has found under the same lock. Raises `LakeUnusable`."""
    with reading_table(lake.path(SCRATCH)):
        if lake.local is not None:
            shutil.rmtree(lake.local / SCRATCH)
        else:
            system, path = open_file_system(lake.path(SCRATCH))
            system.delete_dir(path)
