"""Source files to look at."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from lakejoin.storage.sources.files.source_files import FoundFile, stat_file


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., FoundFile]:
    """Write a file below the test's directory and return it as it would be listed."""

    def write(name: str, content: bytes = b"", modified: int = 1) -> FoundFile:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, ns=(modified * 10**9, modified * 10**9))
        return stat_file(str(path), name, None)

    return write
