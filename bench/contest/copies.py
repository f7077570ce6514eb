"""Copies of lakes and tables that cost no space: their data files never change, so they get a second name."""

import os
import shutil
from pathlib import Path


def copy_linked(source: Path, target: Path) -> None:
    """Copy a folder of Delta tables. Data files are the same files under another name; logs are copies.

    Parts of a log are sometimes written over in place, which would show in the original.
    """
    shutil.copytree(source, target, copy_function=_copy)


def link(file: str | Path, target: str | Path) -> None:
    """Make a file known by a second name, or copy it where its disk is another."""
    try:
        os.link(file, target)
    except OSError:
        shutil.copy2(file, target)


def _copy(file: str, target: str) -> None:
    data = file.endswith((".parquet", ".bin")) and Path(file).parent.name != "_delta_log"
    (link if data else shutil.copy2)(file, target)
