"""Makes the pipeline that unit tests run in: the results of a file, over records that are given, in a lake of its own.

Tests of tables run side by side in one lake: a mark of its test is a part of each row's key and of each foreign key, so
no row meets one of another test. Where a clock decides that records share (streams, versions by event time), a test has
a lake to itself.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from lakejoin.orchestration.config import Pipeline, load_text
from lakejoin.orchestration.config.document import written
from lakejoin.orchestration.config.loading import declared_in
from lakejoin.orchestration.unit_tests.declared import Row, UnitTest
from lakejoin.orchestration.unit_tests.scratch_document import MARK, ScratchDocument, number_in
from lakejoin.storage.lake.layout import QUARANTINE

FIRST_DAY = date(9000, 1, 1)
"""The day of the first batch, later than any event: none is refused as one of the future."""
_VALUE = rf"{MARK}=\d+"
_MARKED = re.compile(rf",? ?\S*{MARK}_\w+ {_VALUE}|, {_VALUE}|, \S*{MARK}_\w+(?=[,)])")
"""How sentences name a test: after its column, as the last part of a key, and its column in a foreign key."""
Place = tuple[str, date, int]
"""Table, day and line of a record."""


@dataclass(frozen=True)
class Scratch:
    """A pipeline with the records of tests in its sources."""

    pipeline: Pipeline
    document: ScratchDocument
    places: Mapping[Place, int]
    """The number of the test that gave a record."""

    def number_of(self, name: str, row: Row) -> int:
        """Return the number of the test whose a row of a result, a table or the quarantine is."""
        if not self.document.marks:
            return self.document.tests[0].number
        if name == QUARANTINE:
            return self.places[row["table"], row["date"], row["line"]]
        return number_in(row[self.document.marks[name.partition(".")[0]]])

    def told(self, sentence: str) -> str:
        """Return a sentence without what only this pipeline has."""
        for name in self.pipeline.inputs:
            for part, column in self.document.order_of(name).items():
                sentence = sentence.replace(column, part)
        return _MARKED.sub("", sentence)


def can_share(pipeline: Pipeline, test: UnitTest) -> bool:
    """Whether no clock that records share decides what comes of a test."""
    versioned = {name for name, table in pipeline.tables.items() if table.versioned}
    return not _needed(pipeline, [test]) & {*pipeline.streams, *versioned}


def scratch_pipeline(pipeline: Pipeline, tests: Sequence[UnitTest], folder: Path) -> Scratch:
    """Write the records of tests below a folder, and return the pipeline that reads them."""
    document = ScratchDocument(pipeline, declared_in(pipeline), tests)
    needed = _needed(pipeline, tests)
    text = written(document.of(needed, folder))
    path = folder / "lakejoin.yaml"
    path.write_text(text, encoding="utf-8")
    places: dict[Place, int] = {}
    for name in needed & pipeline.inputs.keys():
        places |= _write(document, name, folder)
    return Scratch(load_text(text, path), document, places)


def _needed(pipeline: Pipeline, tests: Sequence[UnitTest]) -> set[str]:
    """Return the names that tests say, and of whatever these are made of."""
    names = {name.partition(".")[0] for test in tests for name in test.expected} - {QUARANTINE}
    names |= {name for test in tests for batch in test.batches for name in batch}
    return set(pipeline.made_of(*names))


def _write(document: ScratchDocument, name: str, folder: Path) -> dict[Place, int]:
    """Write the records of a table, a file a batch, and return by the numbers of their tests whose they are."""
    (folder / name).mkdir()
    found: dict[Place, int] = {}
    for batch in range(max(len(test.batches) for test in document.tests)):
        day = FIRST_DAY + timedelta(days=batch)
        given = [
            (test, record) for test in document.tests for record in _records(document, name, test, batch)
        ]
        if given:
            lines = [json.dumps(record, ensure_ascii=False) for _, record in given]
            (folder / name / f"{day}.jsonl").write_text("\n".join([*lines, ""]), encoding="utf-8")
        found |= {(name, day, line): test.number for line, (test, _) in enumerate(given, start=1)}
    return found


def _records(document: ScratchDocument, name: str, test: UnitTest, batch: int) -> Iterator[Row]:
    """Yield what a test gives of a table in a batch."""
    given = [earlier.get(name, ()) for earlier in test.batches[: batch + 1]]
    if len(given) > batch:
        first = sum(map(len, given[:-1])) + 1
        for number, record in enumerate(given[-1], start=first):
            yield document.record(name, test, record, number)
