"""Reads a store lazily: rows in order, forwards or backwards, from as few files as can hold the next ones.

Nothing is read before the first row is asked for, nor after the last one that is. No Spark job is started.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from lakejoin.storage.stores.errors import WrongKey
from lakejoin.storage.stores.scan.delta_table import TableFiles
from lakejoin.storage.stores.scan.order import Column, Place, Span, ahead
from lakejoin.storage.stores.scan.row_groups import FilePart, Wanted
from lakejoin.storage.stores.scan.sorted_merge import Merge
from lakejoin.storage.stores.scan.table_columns import Shape, Source, dotted

Row = dict[str, Any]


class Reader:
    """The rows of one store, in one table or in a base and the log behind it."""

    def __init__(
        self,
        sources: Sequence[Source],
        shape: Shape,
        *,
        tables: Sequence[TableFiles] | None = None,
        schema: pa.Schema | None = None,
    ) -> None:
        """`tables`: those of the sources, if they were opened before. `schema`: by default that of the first one."""
        self.shape = shape
        found = tables if tables is not None else [TableFiles(s.path, s.version) for s in sources]
        self._sources = list(zip(sources, found, strict=True))
        self._schema = schema if schema is not None else found[0].schema

    @property
    def opened(self) -> list[str]:
        """Names of the files that were opened so far."""
        return [name for _, table in self._sources for name in table.opened]

    @property
    def path(self) -> str:
        """Where the rows are, for messages; of a base and its log, the base."""
        return self._sources[0][1].path if self._sources else "a store that holds nothing yet"

    @property
    def tables(self) -> list[TableFiles]:
        """What is read."""
        return [table for _, table in self._sources]

    def blocks(self, span: Span, *, reverse: bool = False, tombstones: bool = False) -> Iterator[pa.Table]:
        """Yield the rows of a span in order, in blocks that grow; with tombstones if asked for."""
        if span.nowhere:
            return
        wanted = [Wanted(self.shape, self._schema, source, span, reverse) for source, _ in self._sources]
        parts = [
            FilePart(table, file, asked)
            for asked, (_, table) in zip(wanted, self._sources, strict=True)
            for file in table.files(asked.bounded)
            if asked.meets(file.bounds)
        ]
        late = wanted[0].late if wanted else {}
        yield from Merge(parts, self.shape, late, reverse=reverse, tombs=tombstones).blocks()

    def rows(self, span: Span, *, reverse: bool = False, tombstones: bool = False) -> Iterator[Row]:
        """Yield the rows of a span in order."""
        for block in self.blocks(span, reverse=reverse, tombstones=tombstones):
            yield from block.to_pylist()

    def kind(self, column: Column) -> pa.DataType:
        """Return the type of a column."""
        kind = self._schema.field(column[0]).type
        for name in column[1:]:
            kind = kind.field(name).type
        return kind

    def value(self, column: Column, value: Any) -> Any:
        """Return a value as rows of this column hold it. Raises `WrongKey` where none of its type equals it.

        A time without a zone equals none with one.
        """
        kind = self.kind(column)
        try:
            found = pa.scalar(value, kind).as_py()
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            found = None
        if found is None or found != value:
            raise WrongKey(f"{self.path}: {_misfit(dotted(column), kind, value)}")
        return found

    def content(self, name: str, value: Any) -> Any:
        """Return a value as a column that is no key holds it. Raises `WrongKey` where it cannot.

        Only a float may be rounded.
        """
        kind = self.kind((name,))
        try:
            found = pa.scalar(value, kind)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise WrongKey(f"{self.path}: {_misfit(name, kind, value)}; nothing was put") from error
        if pa.types.is_nested(kind):
            return value
        if not pa.types.is_floating(kind) and found.as_py() != value:
            raise WrongKey(f"{self.path}: {_misfit(name, kind, value)}; nothing was put")
        return found.as_py()

    def estimate(self) -> int:
        """Return about how many rows there are, by the log alone: superseded rows and tombstones are counted."""
        files = [file for table in self.tables for file in table.files(self.shape.order)]
        return sum(
            (file.rows or 0) - (file.kept.false_count if file.kept is not None else 0) for file in files
        )

    def remarks(self) -> list[str]:
        """Say what makes reading in order take more files than it need to; nothing where files follow each other."""
        found = []
        for source, table in self._sources:
            wanted = Wanted(self.shape, self._schema, source, Span(), reverse=False)
            files = table.files(wanted.bounded)
            unknown = [file for file in files if not wanted.place(file.bounds, 0)]
            if unknown:
                found.append(
                    f"{table.path}: Delta's log says nothing of {dotted(self.shape.key[0])} in {len(unknown)} of "
                    f"{len(files)} files; each read opens them to see their footers"
                )
            overlapping = _overlapping(
                [(wanted.place(f.bounds, 0), wanted.place(f.bounds, 1)) for f in files]
            )
            if overlapping:
                found.append(
                    f"{table.path}: {overlapping} of {len(files)} files hold keys between those of others; these are "
                    "read together and merged"
                )
            if table.unsorted:
                found.append(
                    f"{table.path}: rows of {len(table.unsorted)} files stand in another order than that of the store; "
                    "what is read of them is sorted first"
                )
        return found


def _misfit(name: str, kind: pa.DataType, value: Any) -> str:
    """What is wrong with a value that a column of this type cannot hold, and what would be right."""
    zone = " with a time zone" if pa.types.is_timestamp(kind) and kind.tz is not None else ""
    return f"expected a value{zone} for {name}, which is {kind}, found {value!r}; give it as this type"


def _overlapping(bounds: Sequence[tuple[Place, Place]]) -> int:
    """How many files begin before an earlier one has ended."""
    count, last = 0, None
    for least, greatest in sorted((b for b in bounds if b[0] and b[1]), key=lambda b: b[0]):
        count += last is not None and not ahead(last, least)
        last = greatest if last is None or ahead(last, greatest) else last
    return count
