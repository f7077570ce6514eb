"""Finds commits that a power loss left empty or torn, in the Delta logs of a local lake.

A commit is written beside its place and renamed into it. Where the disk had not taken the content yet, a power loss may
keep the name and lose the content. Spark reads an empty commit as one without changes: the rows and the transaction
identifier of that version are lost in silence (Delta protocol, "Delta Log Entries").
"""

import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.")
_SUFFIX = ".damaged"


@dataclass(frozen=True)
class DamagedCommit:
    """A version of a table whose commit is not whole."""

    table: str
    """Name below the lake."""
    version: int
    last: bool
    """Whether no whole later version stands on it."""
    found: str
    """What is wrong with it, as text."""
    file: Path

    def set_aside(self) -> None:
        """Take the commit out of the log, with what was made of it; the table ends before it."""
        for file in (self.file, *self.file.parent.glob(f"{self.file.stem}.checkpoint.*")):
            file.rename(file.with_name(file.name + _SUFFIX))
        # Delta's figures about the version, and where it looks for a checkpoint first
        for name in (f"{self.file.stem}.crc", f".{self.file.name}.crc", "_last_checkpoint"):
            self.file.with_name(name).unlink(missing_ok=True)


def damaged_commits(lake: Path, tables: Iterable[str]) -> list[DamagedCommit]:
    """Return the commits of tables that are empty, and the last ones that are torn; of a table, the newest first."""
    return [damaged for table in tables for damaged in _of_table(lake, table)]


def is_empty(lake: Path, table: str, version: int) -> bool:
    """Whether the commit of a version is there without content. One that a checkpoint made superfluous is not."""
    file = _file(lake, table, version)
    try:
        return file.stat().st_size == 0 and _held(file.parent.iterdir()) < version
    except FileNotFoundError:
        return False


def flush(path: str) -> None:
    """See that a power loss leaves whole what a table got since its last checkpoint: files of data and log entries.

    For local tables; an object store takes objects whole.
    """
    if "://" in path:
        return
    table = Path(path)
    log = table / "_delta_log"
    since = max((file.stat().st_mtime_ns for file in log.glob("*.checkpoint.*")), default=0)
    files = [file for file in (*table.glob("*.parquet"), *log.iterdir()) if file.stat().st_mtime_ns >= since]
    for written in (*files, log, table):
        opened = os.open(written, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def _file(lake: Path, table: str, version: int) -> Path:
    return lake / table / "_delta_log" / f"{version:020d}.json"


def _of_table(lake: Path, table: str) -> Iterator[DamagedCommit]:
    log = lake / table / "_delta_log"
    files = list(log.iterdir()) if log.is_dir() else []
    held = _held(files)
    versions = sorted((version for file in files if (version := _version(file.name)) > held), reverse=True)
    last = True
    for version in versions:
        file = _file(lake, table, version)
        found = "is empty" if file.stat().st_size == 0 else _torn(file) if last else None
        last = last and found is not None
        if found is not None:
            yield DamagedCommit(table, version, last, found, file)


def _held(log: Iterable[Path]) -> int:
    """The last version that has a checkpoint with content, for a power loss may empty these too; -1 for none."""
    found = ((_CHECKPOINT.match(file.name), file) for file in log)
    return max((int(match[1]) for match, file in found if match and file.stat().st_size), default=-1)


def _version(name: str) -> int:
    match = _COMMIT.fullmatch(name)
    return int(match[1]) if match else -1


def _torn(file: Path) -> str | None:
    """What is missing of a commit; Delta and delta-rs put `commitInfo` into each."""
    try:
        actions = [json.loads(line) for line in file.read_bytes().splitlines() if line]
    except ValueError:  # no JSON, or no text
        return "ends in the middle of a line"
    if any("commitInfo" in action for action in actions if isinstance(action, dict)):
        return None
    return "does not say who made it"
