"""Commits that a power loss left empty or torn, in the Delta logs of a local lake.

A commit is written beside its place and renamed into it; where the disk had not taken the content yet, the name may
outlive a power loss and the content not. Spark reads an empty commit as one without changes: the rows and the
transaction identifier of that version are gone without a word (Delta protocol, "Delta Log Entries").
"""

import json
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
    """Whether no later version stands on it."""
    found: str
    """What is the matter with it."""
    file: Path

    def set_aside(self) -> None:
        """Take the commit out of the log, and Delta's figures about the version; the table ends before it."""
        self.file.rename(self.file.with_name(self.file.name + _SUFFIX))
        for figures in (f"{self.file.stem}.crc", f".{self.file.name}.crc"):
            self.file.with_name(figures).unlink(missing_ok=True)


def damaged_commits(lake: Path, tables: Iterable[str]) -> list[DamagedCommit]:
    """Return the commits of tables that are empty, and the last ones that are torn."""
    return [damaged for table in tables for damaged in _of_table(lake, table)]


def is_empty(lake: Path, table: str, version: int) -> bool:
    """Whether the commit of a version is there without content. One that a checkpoint made superfluous is not."""
    try:
        return _file(lake, table, version).stat().st_size == 0
    except FileNotFoundError:
        return False


def _file(lake: Path, table: str, version: int) -> Path:
    return lake / table / "_delta_log" / f"{version:020d}.json"


def _of_table(lake: Path, table: str) -> Iterator[DamagedCommit]:
    log = lake / table / "_delta_log"
    names = [file.name for file in log.iterdir()] if log.is_dir() else []
    # what a checkpoint holds is read from there
    held = max((int(match[1]) for name in names if (match := _CHECKPOINT.match(name))), default=-1)
    versions = sorted(version for name in names if (version := _version(name)) > held)
    for version in versions:
        file, last = _file(lake, table, version), version == versions[-1]
        found = "is empty" if file.stat().st_size == 0 else _torn(file) if last else None
        if found is not None:
            yield DamagedCommit(table, version, last, found, file)


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
