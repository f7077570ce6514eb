"""Makes a lake once more for `lakejoin certify`, and compares."""

from typing import TYPE_CHECKING

from lakejoin.orchestration.cli import options

if TYPE_CHECKING:
    from lakejoin.orchestration.config import Pipeline
    from lakejoin.orchestration.planning.pending_input import BatchBy
    from lakejoin.orchestration.verification.certificate import Certificate, Replay
    from lakejoin.orchestration.verification.diff import Side


def replayed(pipeline: "Pipeline", made: "Certificate", cut: str) -> "Replay":
    """Make everything once more by batches that are cut otherwise, and tell what came.

    Raises `WrongUsage` for another cut, for sources that cannot be read again, and where something waits: what was
    certified would not be what is read.
    """
    from lakejoin.orchestration.runs.replay import second_lake
    from lakejoin.orchestration.runs.run import run_batches
    from lakejoin.orchestration.verification.certificate import Replay, certified, differences
    from lakejoin.orchestration.verification.diff import Side
    from lakejoin.storage.lake.journal import Journal
    from lakejoin.storage.lake.layout import Lake

    batch_by, rows = _cut(cut)
    _check_replayable(pipeline)
    with second_lake(pipeline) as second:
        session = options.open_session(pipeline)
        flush = any(batch.kind == "flush" for batch in Journal(Lake(pipeline.lake)).published)
        batches = sum(
            1 for _ in run_batches(second, session, batch_by=batch_by, batch_rows=rows, flush=flush)
        )
        again = certified(second)
        found = differences(made, again)
        if found.inputs:
            _other_input(found.inputs)
        sides = Side.of(pipeline), Side.of(second)
        first = {name: key for name in found.content if (key := _first(*sides, name))}
    return Replay(cut=cut, batches=batches, content=again.content, first_differences=first)


def _cut(cut: str) -> tuple["BatchBy", int | None]:
    from lakejoin.orchestration.errors import WrongUsage

    if cut == "all":
        return "all", None
    if cut == "date":
        return "date", None
    if cut.isdigit() and int(cut):
        return "size", int(cut)
    raise WrongUsage(f"--replay {cut!r}: expected all, date or a number of records")


def _check_replayable(pipeline: "Pipeline") -> None:
    from datetime import UTC, datetime

    from lakejoin.orchestration.errors import WrongUsage
    from lakejoin.orchestration.planning.backlog import backlog

    databases = [name for name, read in pipeline.inputs.items() if read.source.format == "jdbc"]
    if databases:
        raise WrongUsage(
            f"--replay: {', '.join(databases)} asks a database, which no longer says what it said then"
        )
    if not backlog(pipeline, datetime.now(UTC)).is_empty:
        raise WrongUsage("--replay: something waits to be read; `lakejoin run` first, then certify")


def _other_input(names: tuple[str, ...]) -> None:
    from lakejoin.orchestration.errors import WrongUsage

    raise WrongUsage(
        f"--replay: the sources of {', '.join(names)} do not hold any more what the lake was made of: files were "
        "changed, replaced or removed"
    )


def _first(one: "Side", other: "Side", name: str) -> str:
    """Return the key of the first row that differs; empty where there is none, or rows have no key."""
    from lakejoin.orchestration.verification.diff import comparable, diff

    if name not in comparable(one, other):
        return ""
    (found,) = diff(one, other, [name])
    if not found.comparison.first:
        return ""
    return ", ".join(f"{column} {value}" for column, value in found.comparison.first[0].key.items())
