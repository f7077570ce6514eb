"""Lists the files that a user names, and says by which path a configuration in some folder would name each."""

import os.path
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lakejoin.storage.errors import SourceNotFound
from lakejoin.storage.filesystem import is_local
from lakejoin.storage.sources.files.file_listing import is_skipped
from lakejoin.storage.sources.files.path_patterns import fixed
from lakejoin.storage.sources.files.source_files import find_files


def files_at(places: Sequence[str], folder: Path) -> dict[str, str]:
    """Return where files are, by their names relative to a folder; those at a URI have that as their name.

    `places`: files, directories with all that lies below them, or patterns as paths of sources are. Raises
    `SourceNotFound` where there is nothing, and what listing raises.
    """
    found: dict[str, str] = {}
    for place in places:
        paths = _paths(place)
        if not paths:
            raise SourceNotFound(
                f"{place}: no file there; name a file with records, a folder, or a pattern in quotes"
            )
        for path in paths:
            found[os.path.relpath(path, folder.absolute()) if is_local(path) else path] = path
    return found


def _paths(place: str) -> list[str]:
    there = Path(place)
    if is_local(place) and there.is_file() and not is_skipped(there.name):
        return [str(there.absolute())]  # a shell may have written thousands out, and each would be looked for
    path = fixed(place) if is_local(place) and there.exists() else place
    return [file.path for file in find_files(path, settle=timedelta(0), now=datetime.now(UTC))]
