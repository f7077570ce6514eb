"""Writes the configuration of a pipeline for tests: its tables over records that are given, its results as declared."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.runs.replay import unregistered
from lakejoin.orchestration.unit_tests.declared import Row, UnitTest, op_key

MARK = "lakejoin_test"
"""How the columns begin that only such a pipeline has."""
_OP = f"{MARK}_op"
_KEPT = ("key", "where", "event_time", "versioned")
"""What a table in a test has as it is declared. The rest is about its source, and about age."""
_FOR_EVER = "36500 days"


def mark_of(test: UnitTest) -> str:
    """Return what marks the rows of a test."""
    return f"{MARK}={test.number}"


def number_in(mark: str) -> int:
    """Return the number of the test that a mark is of."""
    return int(mark.removeprefix(f"{MARK}="))


class ScratchDocument:
    """What the file of such a pipeline says."""

    def __init__(self, pipeline: Pipeline, declared: Mapping[str, Any], tests: Sequence[UnitTest]) -> None:
        """Begin with a pipeline, what its file says, and the tests that are to share the lake."""
        self.pipeline, self._declared, self.tests = pipeline, declared, tests
        self.marks: dict[str, str] = {}
        """Of each table and result the column that tells the test; empty where there is just one test."""
        if len(tests) > 1:
            for name in [*pipeline.inputs, *pipeline.joins]:
                is_own = name in pipeline.inputs or name in pipeline.groups
                left = name if is_own else pipeline.joins[name].left_side
                self.marks[name] = f"{MARK}_{name}" if is_own else self.marks[left]

    def of(self, needed: set[str], folder: Path) -> dict[str, Any]:
        """Return it, with these tables, streams and results; files and lake lie below a folder."""
        made: dict[str, Any] = {"name": self.pipeline.name, "lake": str(folder / "lake")}
        made |= {key: self._declared[key] for key in ("spark", "engine") if key in self._declared}
        made["maintenance"] = {"when": "separately"}
        for section in ("tables", "streams", "joins", "groups"):
            declared = self._declared.get(section) or {}
            made[section] = {
                name: self._entry(section, name, entry, folder)
                for name, entry in declared.items()
                if name in needed
            }
        return {key: value for key, value in made.items() if value}

    def order_of(self, name: str) -> dict[str, str]:
        """Return what orders a table's changes and is no column of it, with the column that it is here."""
        read = self.pipeline.inputs[name]
        return {part: f"{MARK}_{name}_{part}" for part in read.sequence if part not in read.columns}

    def record(self, name: str, test: UnitTest, given: Row, number: int) -> Row:
        """Return a record of a test as its line has it; what only orders it and is not given is its number."""
        columns = self.pipeline.inputs[name].columns
        made = {key: value for key, value in given.items() if key in columns}
        made |= {column: given.get(part, number) for part, column in self.order_of(name).items()}
        marked = {self.marks[name]: mark_of(test)} if self.marks else {}
        return {**made, _OP: given.get(op_key(columns), "c"), **marked}

    def _entry(self, section: str, name: str, entry: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        if section in ("tables", "streams"):
            return self._input(name, entry, folder)
        made = unregistered(entry)
        if not self.marks:
            return made
        return self._group(name, made) if section == "groups" else self._join(name, made)

    def _input(self, name: str, entry: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        read, order = self.pipeline.inputs[name], self.order_of(name)
        made = {key: entry[key] for key in _KEPT if key in entry}
        made["columns"] = {column: declared.type for column, declared in read.columns.items()}
        made["columns"] |= dict.fromkeys(order.values(), "bigint")
        if name in self.pipeline.tables:
            made["tombstone_retention"] = _FOR_EVER
        if read.sequence:
            made["sequence"] = [order.get(part, part) for part in read.sequence]
        made["source"] = {
            "format": "jsonl",
            "path": str(folder / name / "{date}.jsonl"),
            "op": {"column": _OP, "upsert": ["c", "r", "u"], "delete": ["d"]},
            "timezone": "UTC",
            "absent": read.source.absent or "clear",
        }
        if self.marks:
            made["columns"][self.marks[name]] = "string"
            made["key"] = [*read.key, self.marks[name]]
        return made

    def _join(self, name: str, made: dict[str, Any]) -> dict[str, Any]:
        mark, rights = self.marks[name], made.get("rights")
        if rights:
            made["rights"] = {
                side: {**right, "foreign_key": [*right["foreign_key"], mark]}
                for side, right in rights.items()
            }
        else:
            made["foreign_key"] = [*made["foreign_key"], mark]
        select = made.get("select")
        if select is not None:
            own = [] if any(str(entry).startswith("*") for entry in select) else [mark]
            if made.get("result_key") == "combined":
                own.append(f"{made.get('prefix', 'right_')}{self.marks[made['right']]}")
            made["select"] = [*select, *own]
        return made

    def _group(self, name: str, made: dict[str, Any]) -> dict[str, Any]:
        return made | {"by": [*made["by"], {self.marks[name]: self.marks[made["of"]]}]}
