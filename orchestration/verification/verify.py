"""Computes results a second time with DuckDB, from the current rows of a lake, and compares each cell."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.show.arrow_tables import arrow_tables
from lakejoin.orchestration.verification.comparison import Comparison, compare
from lakejoin.orchestration.verification.duck_tables import connected, create, rows_of
from lakejoin.orchestration.verification.recomputed import Recomputed, Unverifiable, recomputed
from lakejoin.storage.delta_log.arrow_query import identifier
from lakejoin.storage.delta_log.live_files import live_files
from lakejoin.storage.lake.layout import Lake, history_of, joined_of, shown_name
from lakejoin.storage.lake.plan import Plan
from lakejoin.transforms.foreign_key_join.history import UNTIL, by_event_time
from lakejoin.transforms.model.result_spec import ResultSpec
from lakejoin.transforms.model.schemas import VALID_FROM, VALID_TO

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_STREAM = "a join of a stream: what its events met is no longer among the current rows"
_EVENTS = "a history by event time: it says what was true then, not what batches made"


@dataclass(frozen=True)
class Part:
    """Which rows of a result are verified: all, a part of them chosen by a hash of their key, or some keys."""

    rows: int | None = None
    """About how many; None for all."""
    keys: Sequence[Sequence[Any]] = ()
    """Typed values of the keys; none for any."""
    turn: int | None = None
    """Which part, counted from 0, beginning anew behind the last one; by default it goes by the number of the batch."""


@dataclass(frozen=True)
class Cost:
    """What is read at most to verify results; of columns that are not needed, less."""

    tables: int
    files: int
    bytes: int


@dataclass(frozen=True)
class Verdict:
    """What became of the verification of a result, or of its history."""

    name: str
    unverified: str = ""
    """Why it was not verified at all; empty where it was."""
    comparison: Comparison | None = None
    left_out: Sequence[str] = ()
    """Columns that were not compared, and of what they are made."""
    part: int = 1
    """Which of so many parts was verified:"""
    parts: int = 1
    overlaps: int = 0
    """Of a history how many versions go on when the next one of their key has begun."""

    @property
    def differs(self) -> bool:
        """Whether anything is wrong."""
        return bool(self.overlaps) or (self.comparison is not None and not self.comparison.equal)

    @property
    def at_most(self) -> float:
        """The share of all rows that differs at most, with 95 % confidence, where none of a part did."""
        rows = self.comparison.rows if self.comparison else 0
        return 1.0 if not rows else float(1 - 0.05 ** (1 / rows))


def verify(pipeline: Pipeline, snapshot: Plan, names: Sequence[str], part: Part) -> Iterator[Verdict]:
    """Verify results as a snapshot has them, each behind its history.

    Raises `WrongUsage` where DuckDB is not installed, `LakeUnusable` and `LakeInconsistent` for what cannot be read.
    """
    for name in names:
        if name in pipeline.joins_of_streams:
            yield Verdict(name, _STREAM)
            continue
        spec = pipeline.keyed_spec(name)
        if joined_of(name) not in snapshot.versions:
            yield Verdict(name, "it holds nothing yet")
            continue
        try:
            made = recomputed(spec)
        except Unverifiable as reason:
            yield Verdict(name, str(reason))
        else:
            yield _tried(name, partial(_verified, pipeline, snapshot, spec, made, part))
        if spec.history is not None:
            yield _tried(shown_name(history_of(name)), partial(_history, pipeline, snapshot, spec, part))


def cost(pipeline: Pipeline, snapshot: Plan, names: Sequence[str]) -> Cost:
    """Tell from the logs of the tables what verifying all rows of results reads; a part of the rows reads the same.

    Raises `LakeInconsistent`.
    """
    readable, lake = arrow_tables(pipeline), Lake(pipeline.lake)
    read = set[str]()
    for name in {*names} & {*verifiable(pipeline)}:
        spec = pipeline.keyed_spec(name)
        history = [shown_name(history_of(name))] if spec.history is not None else []
        read.update(table for one in (name, *history, *_sides(spec)) for table in readable[one].tables)
    there = {table: snapshot.versions[table] for table in read if table in snapshot.versions}
    files = [file for table, version in there.items() for file in live_files(lake.path(table), version)]
    return Cost(len(there), len(files), sum(file.size for file in files))


def verifiable(pipeline: Pipeline) -> list[str]:
    """Return the results that DuckDB can compute, whatever they hold."""
    found = []
    for name in pipeline.kept_by_key:
        with suppress(Unverifiable):
            recomputed(pipeline.keyed_spec(name))
            found.append(name)
    return found


def _tried(name: str, verified: "Callable[[DuckDBPyConnection], Verdict]") -> Verdict:
    """A verdict, or why DuckDB could not give one: a number that is too great for its type, no room on the disk."""
    with connected() as connection:
        import duckdb

        try:
            return verified(connection)
        except duckdb.Error as error:
            return Verdict(name, f"DuckDB could not compute it: {str(error).splitlines()[0]}")


def _verified(
    pipeline: Pipeline, snapshot: Plan, spec: ResultSpec, made: Recomputed, part: Part, connection: "DuckDBPyConnection"
) -> Verdict:  # fmt: skip
    columns = [*spec.joined_key, *made.columns]
    for name, needed in _sides(spec).items():
        create(connection, identifier(name), rows_of(pipeline, snapshot, name, needed))
    create(connection, "_found", rows_of(pipeline, snapshot, spec.name, columns))
    types = {row[0]: row[1] for row in connection.execute("DESCRIBE _found").fetchall()}
    casts = ", ".join(f"CAST({identifier(name)} AS {types[name]}) AS {identifier(name)}" for name in columns)
    chosen, number, parts = _choice(connection, snapshot, spec, part)
    connection.execute(
        f"CREATE VIEW _expected AS SELECT * FROM (SELECT {casts} FROM ({made.sql})) AS r{chosen}"
    )
    connection.execute(f"CREATE VIEW _held AS SELECT * FROM _found AS r{chosen}")
    found = compare(connection, ("_expected", "_held"), spec.joined_key, made.columns, made.rounded)
    return Verdict(spec.name, comparison=found, left_out=made.left_out, part=number, parts=parts)


def _history(
    pipeline: Pipeline, snapshot: Plan, spec: ResultSpec, part: Part, connection: "DuckDBPyConnection"
) -> Verdict:  # fmt: skip
    """Compare the versions that no batch has ended with the result; and see that no version goes on into the next."""
    name = shown_name(history_of(spec.name))
    if by_event_time(spec):
        return Verdict(name, _EVENTS)
    columns, key = [*spec.columns.names], ", ".join(map(identifier, spec.joined_key))
    create(connection, "_found", rows_of(pipeline, snapshot, spec.name, columns))
    create(
        connection,
        "_versions",
        rows_of(pipeline, snapshot, name, [*columns, VALID_FROM, VALID_TO, UNTIL]),
    )
    chosen, number, parts = _choice(connection, snapshot, spec, part)
    connection.execute(f"CREATE VIEW _open AS SELECT * FROM _versions AS r{chosen}")
    listed = ", ".join(map(identifier, columns))
    connection.execute(f"CREATE VIEW _now AS SELECT {listed} FROM _open WHERE {UNTIL} IS NULL")
    connection.execute(f"CREATE VIEW _held AS SELECT * FROM _found AS r{chosen}")
    others = [column for column in columns if column not in spec.joined_key]
    found = compare(connection, ("_held", "_now"), spec.joined_key, others)
    following = f"lead({VALID_FROM}) OVER (PARTITION BY {key} ORDER BY {VALID_FROM})"
    goes_on = f"_lj_next IS NOT NULL AND ({VALID_TO} IS NULL OR {VALID_TO} > _lj_next)"
    times = f"{VALID_FROM}, {VALID_TO}, {following} AS _lj_next"
    wrong = f"{goes_on} OR {VALID_TO} < {VALID_FROM}"
    counted = f"SELECT count(*) FROM (SELECT {times} FROM _open) WHERE {wrong}"
    overlaps = connection.execute(counted).fetchall()[0][0]
    return Verdict(name, comparison=found, part=number, parts=parts, overlaps=overlaps)


def _choice(
    connection: "DuckDBPyConnection", snapshot: Plan, spec: ResultSpec, part: Part
) -> tuple[str, int, int]:  # fmt: skip
    """The condition that chooses what is verified, behind a table called `r`; which of how many parts that is."""
    if part.keys:
        types = StructType([spec.columns[name] for name in spec.joined_key])
        schema: pa.Schema = to_arrow_schema(types, timezone="UTC")
        columns = [pa.array([key[n] for key in part.keys], field.type) for n, field in enumerate(schema)]
        create(connection, "_keys", pa.table(columns, schema=schema).to_reader())
        same = " AND ".join(
            f"r.{identifier(n)} IS NOT DISTINCT FROM k.{identifier(n)}" for n in spec.joined_key
        )
        return f" WHERE EXISTS (FROM _keys AS k WHERE {same})", 1, 1
    if part.rows is None:
        return "", 1, 1
    number = connection.execute("SELECT count(*) FROM _found").fetchall()[0][0]
    parts = max(1, -(-number // part.rows))
    turn = (snapshot.batch - 1 if part.turn is None else part.turn) % parts
    return f" WHERE hash({', '.join(map(identifier, spec.joined_key))}) % {parts} = {turn}", turn + 1, parts


def _sides(spec: ResultSpec) -> dict[str, list[str]]:
    """What a result reads, with the columns of each."""
    needed: dict[str, list[str]] = {spec.left: list(spec.left_columns.names)}
    for part in spec.parts:
        if part.right != spec.name:  # groups are their own right side
            needed.setdefault(part.right, []).extend([*part.right_key, *part.right_columns.names])
    return needed
