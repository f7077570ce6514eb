"""Runs unit tests on the engine: all that may share a lake side by side, the others one after the other."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructType

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.errors import WrongUsage
from lakejoin.orchestration.explain.explain import Question, explained, key_type
from lakejoin.orchestration.lake_state.published_snapshot import published_snapshot
from lakejoin.orchestration.runs.run import run_batches
from lakejoin.orchestration.show.arrow_tables import arrow_tables
from lakejoin.orchestration.unit_tests.declared import Row, UnitTest
from lakejoin.orchestration.unit_tests.outcome import Difference, Outcome, compare
from lakejoin.orchestration.unit_tests.scratch import Scratch, can_share, scratch_pipeline
from lakejoin.orchestration.unit_tests.scratch_document import MARK, mark_of
from lakejoin.orchestration.unit_tests.values import plain
from lakejoin.storage.errors import LakejoinError
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import QUARANTINE, Lake
from lakejoin.transforms.model.schemas import is_internal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    Session = Callable[[Pipeline], SparkSession]
EXPLAINED = 10
"""Of how many tests that fail it is told how the first row that differs came about."""
_OF_QUARANTINE = ("table", "reason", "detail")
"""What a test says of a record in quarantine, unless it says something else."""


def run_tests(pipeline: Pipeline, tests: Sequence[UnitTest], session: "Session") -> Iterator[Outcome]:
    """Yield what came of each test, in no order.

    session: opens the Spark session of a pipeline. Where a batch fails, its error is what came of the test; a batch of
    several is run once more for each of them.
    """
    sharing = [test for test in tests if can_share(pipeline, test)]
    others = [[test] for test in tests if test not in sharing]
    if sharing:
        try:
            yield from _outcomes(pipeline, sharing, session)
        except LakejoinError as error:
            if len(sharing) == 1:
                yield Outcome(sharing[0], {}, {}, str(error))
            else:  # at which of them?
                others = [*[[test] for test in sharing], *others]
    for alone in others:
        try:
            yield from _outcomes(pipeline, alone, session)
        except LakejoinError as error:
            yield Outcome(alone[0], {}, {}, str(error))


def _outcomes(pipeline: Pipeline, tests: Sequence[UnitTest], session: "Session") -> list[Outcome]:
    """Run tests in one lake, and return what came of each."""
    with TemporaryDirectory(prefix="lakejoin-test-") as folder:
        scratch = scratch_pipeline(pipeline, tests, Path(folder))
        for _ in run_batches(scratch.pipeline, session(scratch.pipeline), batch_by="date"):
            pass
        rows = {name: _by_test(scratch, name) for name in _asked(tests)}
        tables = arrow_tables(pipeline)
        schemas = {name: tables[name].schema for name in rows}
        outcomes = [
            _judged(pipeline, schemas, test, {name: of_tests[test.number] for name, of_tests in rows.items()})
            for test in tests
        ]
        failed = [outcome for outcome in outcomes if not outcome.passed][:EXPLAINED]
        return [
            replace(outcome, explained=_explained(scratch, outcome)) if outcome in failed else outcome
            for outcome in outcomes
        ]


def _asked(tests: Sequence[UnitTest]) -> list[str]:
    return list(dict.fromkeys([*[name for test in tests for name in test.expected], QUARANTINE]))


def _judged(
    pipeline: Pipeline, schemas: Mapping[str, StructType], test: UnitTest, rows: Mapping[str, Sequence[Row]]
) -> Outcome:
    """Compare; records in quarantine of which the test says nothing are not expected."""
    compared, differences = {}, {}
    for name, expected in {QUARANTINE: (), **test.expected}.items():
        columns = _columns(name, expected, schemas[name])
        compared[name] = [{column: row[column] for column in columns} for row in rows[name]]
        differences[name] = compare(expected, compared[name], schemas[name], _key(pipeline, name))
    return Outcome(test, compared, {name: found for name, found in differences.items() if found})


def _columns(name: str, expected: int | Sequence[Row], schema: StructType) -> list[str]:
    """Return which columns are compared: those that the expected rows name, else all that a reader sees."""
    if not isinstance(expected, int) and expected:
        return list(expected[0])
    return list(_OF_QUARANTINE) if name == QUARANTINE else [n for n in schema.names if not is_internal(n)]


def _key(pipeline: Pipeline, name: str) -> list[str]:
    """What identifies a row; empty where rows of a key may be several."""
    return list(key_type(pipeline, name).names) if name in {*pipeline.joins, *pipeline.tables} else []


def _by_test(scratch: Scratch, name: str) -> Mapping[int, list[Row]]:
    """Return the rows that each test has of a result, a table or the quarantine, by the number of the test."""
    lake = Lake(scratch.pipeline.lake)
    table = arrow_tables(scratch.pipeline)[name]
    rows = table.table(lake, published_snapshot(Journal(lake)), table.schema.names)
    found = defaultdict[int, list[Row]](list)
    for row in rows.to_pylist():
        found[scratch.number_of(name, row)].append(row)
    return found


def _explained(scratch: Scratch, outcome: Outcome) -> list[str]:
    """Say how the first row that differs came about, where it is one with a key."""
    for name, differences in outcome.differences.items():
        result = name.partition(".")[0]
        key = _key(scratch.pipeline, result)
        for difference in differences:
            row = (
                (difference.found or difference.expected or {}) if isinstance(difference, Difference) else {}
            )
            values = [mark_of(outcome.test) if MARK in part else plain(row.get(part)) for part in key]
            if key and set(_key(scratch.document.pipeline, result)) <= row.keys():
                return [scratch.told(line) for line in _lines(scratch.pipeline, result, values)]
    return []


def _lines(pipeline: Pipeline, result: str, key: Sequence[Any]) -> list[str]:
    texts = [None if part is None else str(part) for part in key]
    text = texts[0] if len(texts) == 1 and texts[0] is not None else json.dumps(texts)
    try:
        return list(explained(pipeline, Question(result, text)).lines())
    except WrongUsage as error:
        return [str(error)]
