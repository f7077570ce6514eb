"""Reads the text of a record where it stands, in the file of its source, without a JVM."""

from dataclasses import dataclass
from io import TextIOWrapper
from itertools import islice

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.explain.log_rows import Row
from lakejoin.storage.errors import LakejoinError
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.sources.files.fingerprint import open_text
from lakejoin.storage.sources.formats.text_format import JsonFormat
from lakejoin.transforms.model.schemas import BATCH, POSITION

_LONGEST = 100_000
"""Characters that are shown of a line."""


@dataclass(frozen=True)
class RawTexts:
    """The files that the batches of a lake have read."""

    pipeline: Pipeline
    journal: Journal

    def of(self, table: str, row: Row) -> str:
        """Return the text of a record of a table or stream, or why it cannot be shown."""
        form = self.pipeline.inputs[table].source_format
        if not isinstance(form, JsonFormat) or not form.one_per_line:
            return (
                f"not shown: {self.pipeline.inputs[table].source.format} has no line of text for each record"
            )
        position = row[POSITION]
        path = self._path(table, row)
        if path is None:
            return "not shown: the record stands for no line of its own"
        try:
            with TextIOWrapper(open_text(path), "utf-8", errors="replace", newline="\n") as file:
                line = next(islice(file, position["line"] - 1, None), None)
        except (LakejoinError, OSError) as error:
            return f"not shown: {error}"
        return (
            "not shown: its file has fewer lines now" if line is None else line.removesuffix("\n")[:_LONGEST]
        )

    def _path(self, table: str, row: Row) -> str | None:
        """The file that a batch read a record from."""
        position = row[POSITION]
        read = self.journal.plans[row[BATCH] - 1].files_of(table)
        return next(
            (file.path for file in read if (file.date, file.name) == (position["date"], position["file"])),
            None,
        )
