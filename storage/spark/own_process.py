"""Tells how a module of this project is started as a process of its own, installed or in a source tree."""

import os
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[3]  # what the package lies in: a folder of installed ones, or the source tree


def own_process(module: str, *arguments: str) -> tuple[list[str], dict[str, str]]:
    """Return the command and the environment by which another Python of the same installation runs a module."""
    paths = [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return [sys.executable, "-m", module, *arguments], {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
