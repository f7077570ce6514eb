"""Compares a result of one lake or batch with the same of another, cell by cell."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.lake_state.published_snapshot import published_snapshot
from lakejoin.orchestration.lake_state.readable import check_readable
from lakejoin.orchestration.verification.comparison import Comparison, compare
from lakejoin.orchestration.verification.duck_tables import connected, create, rows_of
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.lake.plan import Plan


@dataclass(frozen=True)
class Side:
    """A pipeline as a finished batch left it."""

    pipeline: Pipeline
    journal: Journal
    snapshot: Plan
    kept: bool
    """Whether it is an earlier batch, whose files may be gone."""

    @classmethod
    def of(cls, pipeline: Pipeline, batch: int | None = None) -> "Side":
        """Take a pipeline as a finished batch left it, by default the last one. Raises `WrongUsage` for another."""
        journal = Journal(Lake(pipeline.lake))
        return cls(pipeline, journal, published_snapshot(journal, batch), batch is not None)

    @property
    def called(self) -> str:
        """The lake and the batch."""
        return f"{self.pipeline.lake} after batch {self.snapshot.batch - 1}"


@dataclass(frozen=True)
class Diff:
    """What two sides say differently of a result or a declared table."""

    name: str
    comparison: Comparison
    left_out: Sequence[str]
    """Columns that are not compared: only one of the two has them, or each with a type of its own."""


def comparable(one: Side, other: Side) -> list[str]:
    """Return the results and tables that both declare with the same key; events of streams have none of their own."""
    names = [*one.pipeline.kept_by_key, *one.pipeline.tables]
    theirs = {*other.pipeline.kept_by_key, *other.pipeline.tables}
    return [name for name in names if name in theirs and _key(one, name) == _key(other, name)]


def diff(one: Side, other: Side, names: Sequence[str]) -> Iterator[Diff]:
    """Compare results and tables one after the other.

    Raises `WrongUsage` where DuckDB is not installed or a batch is no longer kept, `ConfigurationChanged`,
    `LakeUnusable` and `LakeInconsistent`.
    """
    for name in names:
        columns = [_columns(side, name) for side in (one, other)]
        both = [column for column in columns[0] if column in columns[1]]
        with connected() as connection:
            for side, table in ((one, "_one"), (other, "_other")):
                check_readable(side.pipeline, side.journal, side.snapshot, name, kept=side.kept)
                create(connection, table, rows_of(side.pipeline, side.snapshot, name, both))
            types = [
                {row[0]: row[1] for row in connection.execute(f"DESCRIBE {table}").fetchall()}
                for table in ("_one", "_other")
            ]
            key = _key(one, name)
            alike = [column for column in both if types[0][column] == types[1][column] and column not in key]
            found = compare(connection, ("_one", "_other"), key, alike)
        yield Diff(name, found, sorted({*columns[0], *columns[1]} - {*alike, *key}))


def _key(side: Side, name: str) -> tuple[str, ...]:
    if name in side.pipeline.tables:
        return side.pipeline.tables[name].spec.key
    return side.pipeline.keyed_spec(name).joined_key


def _columns(side: Side, name: str) -> list[str]:
    if name in side.pipeline.tables:
        return side.pipeline.tables[name].spec.columns.names
    return side.pipeline.keyed_spec(name).columns.names
