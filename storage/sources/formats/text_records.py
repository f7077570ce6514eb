"""Reads records of text and compares their columns, wherever they lie: in files, or in topics."""

from abc import abstractmethod
from dataclasses import replace
from functools import partial, reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lakejoin.storage.sources.formats.source_format import Asked, Ranges, SourceFormat
from lakejoin.storage.sources.rows.ambiguous_rows import ask
from lakejoin.storage.sources.rows.schema_check import Difference, of_rows
from lakejoin.transforms.model.schemas import empty
from lakejoin.transforms.model.specs import TableSpec
from lakejoin.transforms.parsing.ambiguity import Answer
from lakejoin.transforms.parsing.options import ParseOptions, Parts, records_schema
from lakejoin.transforms.parsing.questions import Members, is_asked, questions, with_questions
from lakejoin.transforms.parsing.row_ops import RowOp
from lakejoin.transforms.parsing.validation import finish_records


class TextRecords(SourceFormat):
    """Records whose values are texts."""

    is_text = True
    has_key_beside: bool = False
    """A record has its key beside the row, so that the row may lack it."""

    @abstractmethod
    def take_apart(
        self, spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Ranges
    ) -> list[Parts]:
        """Take parts apart into records whose values are texts; several frames where files differ."""

    @abstractmethod
    def says_types(self, ranges: Ranges) -> bool:
        """Whether records say how their values are written, as far as the beginnings of some parts show."""

    def may_describe(self, options: ParseOptions) -> bool:
        """Whether records may say how their values are written."""
        return False

    def _looked_at(self, options: ParseOptions, ranges: Ranges) -> ParseOptions:
        """The options with whether records say how their values are written."""
        return replace(options, described=self.may_describe(options) and self.says_types(ranges))

    def members(self, table: TableSpec, options: ParseOptions) -> Members | None:
        """What a record that was taken apart says by names of its own; None where those of a file are the same."""
        return None

    def _parts(
        self, spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Ranges
    ) -> list[Parts]:
        parts = self.take_apart(spark, table, options, ranges)
        if not options.asks:
            return parts
        members = self.members(table, options)
        return [with_questions(part, table, options, members) for part in parts]

    def read(self, spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Ranges) -> DataFrame:
        """Read the texts by the declared types."""
        parts = self._parts(spark, table, self._looked_at(options, ranges), ranges)
        read = [finish_records(part, table) for part in parts] or [empty(spark, records_schema(table))]
        return reduce(DataFrame.unionByName, read)

    def ambiguities(
        self, spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Ranges, records: Asked,
        *, begun: bool,
    ) -> list[Answer]:  # fmt: skip
        """Ask of values; and of names, of what orders events and whose they are, where records say that."""
        asking = self._looked_at(replace(options, asks=True), ranges)
        asked = questions(table, asking, self.members(table, asking), begun=begun)

        def apart() -> DataFrame:
            frames = [part.frame for part in self._parts(spark, table, asking, ranges)]
            return reduce(partial(DataFrame.unionByName, allowMissingColumns=True), frames).where(is_asked())

        return ask(records, asked, apart)

    def differences(
        self, spark: SparkSession, table: TableSpec, options: ParseOptions, ranges: Ranges, *, strict: bool
    ) -> list[Difference]:
        """Read the rows, once more than a batch does, and count what they have."""
        rows, files = self.entries(spark, options, ranges), len(ranges) if strict else None
        written = table.as_written
        return of_rows(rows, written, options, files, may_lack=written.key if self.has_key_beside else ())

    @abstractmethod
    def entries(self, spark: SparkSession, options: ParseOptions, ranges: Ranges) -> DataFrame:
        """Read the names and texts of rows that are whole and no deletes: position, entries."""


class LineRecords(TextRecords):
    """Records of which each is a line of text, with names of its own."""

    ignores = True

    @abstractmethod
    def lines(self, spark: SparkSession, options: ParseOptions, ranges: Ranges) -> DataFrame:
        """Read lines: position, context, raw. Raises `SourceError`."""

    @abstractmethod
    def row_of(self, record: Any, row_op: RowOp) -> Any:
        """The row that the JSON of a line holds, for a short look at its names."""
