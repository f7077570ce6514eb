"""What a commit leaves in its table when it ends before its log entry."""

import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyspark.sql import SparkSession

from faults.lakes import forget_logs


def leave_files(path: str, write: Callable[[str], Any]) -> None:
    """Leave in a table what a commit to it writes before its log entry: on a copy it is made to the end."""
    table = Path(path)
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "table"
        if table.exists():
            shutil.copytree(table, copy)
        write(str(copy))
        (table / "_delta_log").mkdir(parents=True, exist_ok=True)
        for file in copy.rglob("*"):
            place = table / file.relative_to(copy)
            if file.is_file() and not place.exists() and "_delta_log" not in place.parts:
                shutil.copy2(file, place)


def leave_files_of_command(path: str, execute: Callable[[], Any]) -> None:
    """The same for a command that is bound to its table: it is made, and its log entry goes. A crash must follow."""
    log = Path(path) / "_delta_log"
    before = {*log.iterdir()}
    execute()
    for file in {*log.iterdir()} - before:
        file.unlink()
    if spark := SparkSession.getActiveSession():
        forget_logs(spark)
