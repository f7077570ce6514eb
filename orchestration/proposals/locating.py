"""Lists the files that a user names, and says by which path a configuration in some folder would name each."""

import os.path
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lakejoin.storage.errors import SourceNotFound
from lakejoin.storage.filesystem import is_local
from lakejoin.storage.sources.files.path_patterns import fixed
from lakejoin.storage.sources.files.source_files import find_files


def files_at(places: Sequence[str], folder: Path) -> dict[str, str]:
    """Return where files are, by their names relative to a folder; those at a URI have that as their name.

    `places`: files, directories with all that lies below them, or patterns as paths of sources are. Raises
    `SourceNotFound` where there is nothing, and what listing raises.
    """
    found: dict[str, str] = {}
    for place in places:
        is_there = is_local(place) and Path(place).exists()
        path = fixed(place) if is_there else place
        files = find_files(path, settle=timedelta(0), now=datetime.now(UTC))
        if not files:
            raise SourceNotFound(
                f"{place}: no file there; name a file with records, a folder, or a pattern in quotes"
            )
        for file in files:
            name = os.path.relpath(file.path, folder.absolute()) if is_local(file.path) else file.path
            found[name] = file.path
    return found
