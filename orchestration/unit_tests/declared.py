"""Reads the file that holds the unit tests of a pipeline, and reports every mistake in it at once."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lakejoin.orchestration.config import ConfigurationError, Pipeline
from lakejoin.orchestration.config.document import Document, line_of, read_document
from lakejoin.orchestration.config.loading import read_text
from lakejoin.orchestration.config.problems import KeyPath, Problem, did_you_mean, found, listed
from lakejoin.orchestration.show.arrow_tables import arrow_tables
from lakejoin.orchestration.unit_tests.values import comparable
from lakejoin.transforms.model.schemas import is_internal

Row = Mapping[str, Any]
OPS = ("c", "r", "u", "d")
SUFFIX = "_tests.yaml"


@dataclass(frozen=True)
class UnitTest:
    """What is given, batch after batch, and what is expected after the last one."""

    name: str
    number: int
    """Which of its file's it is."""
    line: int
    """Where it begins there."""
    batches: Sequence[Mapping[str, Sequence[Row]]]
    """Records by table or stream; the first batch is what was `given`."""
    expected: Mapping[str, int | Sequence[Row]]
    """Of a result, table or the quarantine: its rows, or how many there are."""


def file_of_tests(pipeline: Pipeline) -> Path:
    """Return where the tests of a pipeline stand by default: `lakejoin_tests.yaml` beside `lakejoin.yaml`."""
    return pipeline.path.with_name(f"{pipeline.path.stem}{SUFFIX}")


def op_key(columns: Mapping[str, Any]) -> str:
    """Return by which key a record says what happened: `op`, unless that is a column."""
    return "_op" if "op" in columns else "op"


def read_tests(pipeline: Pipeline, path: Path) -> list[UnitTest]:
    """Read the tests of a file. Raises `ConfigurationError`."""
    document = read_document(read_text(path), str(path), "tests by their names, each with given and expect")
    problems = list(document.problems)
    if document.data is not None:
        problems += _Checks(pipeline, document).problems()
    if problems:
        raise ConfigurationError(problems)
    return [
        UnitTest(
            name,
            number,
            line_of(document.lines, (name,)),
            [batch for batch in (test.get("given"), *(test.get("when") or ())) if batch],
            test["expect"],
        )
        for number, (name, test) in enumerate(document.data.items(), start=1)
    ]


class _Checks:
    """What is wrong in a file of tests."""

    def __init__(self, pipeline: Pipeline, document: Document) -> None:
        self._pipeline, self._document = pipeline, document
        self._schemas = {name: rows.schema for name, rows in arrow_tables(pipeline).items()}

    def problems(self) -> Iterator[Problem]:
        for name, test in self._document.data.items():
            yield from self._of_test((name,), test)

    def _of_test(self, path: KeyPath, test: Any) -> Iterator[Problem]:
        if not isinstance(test, dict):
            yield self._problem(path, f"expected a mapping with given, when and expect; found {found(test)}")
            return
        known = ("given", "when", "expect")
        for key in test.keys() - set(known):
            yield self._problem(
                (*path, key), f"unknown key{did_you_mean(key, known)} (allowed: {listed(known)})"
            )
        when = test.get("when") or ()
        if not isinstance(when, tuple):
            yield self._problem((*path, "when"), f"expected a list of batches; found {found(when)}")
            when = ()
        batches = {(*path, "given"): test.get("given")} | {
            (*path, "when", place): batch for place, batch in enumerate(when)
        }
        if isinstance(test.get("when") or (), tuple) and not any(batches.values()):
            yield self._problem(path, "gives no records: say some in given or when")
        for place, batch in batches.items():
            yield from self._of_batch(place, batch or {})
        yield from self._of_expected((*path, "expect"), test.get("expect"))

    def _of_batch(self, path: KeyPath, batch: Any) -> Iterator[Problem]:
        if not isinstance(batch, dict):
            yield self._problem(path, f"expected records by table or stream; found {found(batch)}")
            return
        for name, records in batch.items():
            if name not in self._pipeline.inputs:
                yield self._unknown((*path, name), "table or stream", name, self._pipeline.inputs)
            elif rows := self._rows((*path, name), records):
                yield from rows
            else:
                for place, record in enumerate(records):
                    yield from self._of_record((*path, name, place), name, record)

    def _of_record(self, path: KeyPath, name: str, record: Row) -> Iterator[Problem]:
        read = self._pipeline.inputs[name]
        op = op_key(read.columns)
        known = [op, *read.columns, *[part for part in read.sequence if part not in read.columns]]
        for key in record:
            if key not in known:
                yield self._unknown((*path, key), f"column of {name}", key, known)
        if record.get(op, "c") not in OPS:
            yield self._problem((*path, op), f"expected one of {listed(OPS)}; found {found(record[op])}")

    def _of_expected(self, path: KeyPath, expected: Any) -> Iterator[Problem]:
        if not isinstance(expected, dict) or not expected:
            yield self._problem(path, "required: rows, or how many, of a result, table or the quarantine")
            return
        for name, rows in expected.items():
            place = (*path, name)
            if name not in self._schemas:
                yield self._unknown(place, "result or table", name, self._schemas)
            elif isinstance(rows, bool) or not isinstance(rows, int):
                yield from self._rows(place, rows) or [*self._of_rows(place, name, rows)]

    def _of_rows(self, path: KeyPath, name: str, rows: Any) -> Iterator[Problem]:
        schema = self._schemas[name]
        shown = [column for column in schema.names if not is_internal(column)]
        for place, row in enumerate(rows):
            if row.keys() != rows[0].keys():
                yield self._problem(
                    (*path, place), f"names other columns than the first row: {listed(rows[0])}"
                )
            for column, value in row.items():
                if column not in schema.names:
                    yield self._unknown((*path, place, column), f"column of {name}", column, shown)
                    continue
                try:
                    comparable(value, schema[column].dataType)
                except ValueError as error:
                    yield self._problem((*path, place, column), str(error))

    def _rows(self, path: KeyPath, rows: Any) -> list[Problem]:
        """What is wrong with what should be a list of mappings."""
        if isinstance(rows, tuple) and all(isinstance(row, dict) and row for row in rows):
            return []
        said = "a list of rows" if path[1] == "expect" else "a list of records"
        return [self._problem(path, f"expected {said}, each a mapping of columns; found {found(rows)}")]

    def _unknown(self, path: KeyPath, what: str, name: str, known: Any) -> Problem:
        return self._problem(
            path, f"no {what} {name!r}{did_you_mean(name, known)} (there are: {listed(known)})"
        )

    def _problem(self, path: KeyPath, message: str) -> Problem:
        return Problem(self._document.name, line_of(self._document.lines, path), path, message)
