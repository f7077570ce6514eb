"""Puts tables and joins together to what a file declares, with names that nothing else has."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from lakejoin.orchestration.proposals.clusters import samples_of
from lakejoin.orchestration.proposals.file_samples import FileSample
from lakejoin.orchestration.proposals.joins import Join, joins_of
from lakejoin.orchestration.proposals.names import free_name
from lakejoin.orchestration.proposals.tables import Table, tables_of


@dataclass(frozen=True)
class Proposal:
    """What the samples say together."""

    tables: Sequence[Table]
    joins: Sequence[Join]
    left_out: Sequence[str] = ()
    """What could not be looked into or declared, a line each."""


def proposed_tables(files: Iterable[str], read: Callable[[str], FileSample]) -> tuple[list[Table], list[str]]:
    """Return tables for files, of which some may miss something, and a line for each that is left out.

    `files`, `read`: as `samples_of` has them.
    """
    samples, left_out = samples_of(files, read)
    tables: list[Table] = []
    for sample in samples:
        for table in tables_of(sample):
            tables.append(replace(table, name=free_name(table.name, [other.name for other in tables])))
    return tables, left_out


def completed(tables: Sequence[Table], left_out: Sequence[str]) -> Proposal:
    """Return the proposal of those tables that miss nothing, with their joins."""
    usable = [table for table in tables if not table.missing]
    missing = [
        f"{table.source['path']}: table {table.name}: {table.missing}" for table in tables if table.missing
    ]
    return Proposal(usable, joins_of(usable), [*left_out, *missing])
