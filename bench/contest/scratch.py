"""Where a measurement writes: a folder that is gone afterwards."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lakejoin.orchestration.cli.terminal import say


@contextmanager
def scratch(workload: Path, *, keep: bool = False) -> Iterator[Path]:
    """A folder beside the workload, on the same disk; removed at the end unless it is to be kept."""
    folder = Path(tempfile.mkdtemp(prefix="bench-", dir=workload.absolute().parent))
    try:
        yield folder
    finally:
        if keep:
            say(f"kept: {folder}")
        else:
            shutil.rmtree(folder)
