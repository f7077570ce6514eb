"""Gives the tests of the engine folders in whose paths a socket fits: pytest's are too long for it."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Return an empty folder, which is removed after the test."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)
