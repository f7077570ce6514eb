"""Runs `lakejoin verify`: computes results a second time with DuckDB, and says where a lake differs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from lakejoin.orchestration.cli import options
from lakejoin.orchestration.cli.differences import print_differences
from lakejoin.orchestration.cli.exit_codes import FAILED
from lakejoin.orchestration.cli.options import AsOfBatch, Config
from lakejoin.orchestration.cli.terminal import say, say_json

if TYPE_CHECKING:
    from lakejoin.orchestration.config import Pipeline
    from lakejoin.orchestration.verification.verify import Part, Verdict
    from lakejoin.storage.lake.plan import Plan


def verify(
    config: Config,
    result: Annotated[
        str | None, typer.Argument(metavar="[RESULT]", help="A join or groups; by default all of them.")
    ] = None,
    *,
    sample: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="About N rows of each result, other ones after each batch."),
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(metavar="K", help="Only rows of these keys; a composite one is a JSON array."),
    ] = None,
    as_of_batch: AsOfBatch = None,
    form: Annotated[
        Literal["table", "json"], typer.Option("--format", help="For people, or JSON.")
    ] = "table",
) -> None:
    """Compute results a second time, by another engine, and compare every cell.

    DuckDB joins and groups the current rows of the tables by SQL of its own. What it would understand
    otherwise than Spark is not verified, and said so. Starts no Spark.
    """
    from lakejoin.orchestration.verification.verify import cost
    from lakejoin.orchestration.verification.verify import verify as verified

    pipeline = options.load_pipeline(config)
    names = _names(pipeline, result)
    part = _part(pipeline, result, sample, key or ())
    snapshot = _snapshot(pipeline, names, as_of_batch)
    if form == "table":
        needed = cost(pipeline, snapshot, names)
        say(
            f"reads at most {needed.bytes / 1e6:,.1f} MB, in {needed.files:,} files of {needed.tables:,} tables",
        )
    verdicts = []
    for verdict in verified(pipeline, snapshot, names, part):
        verdicts.append(verdict)
        if form == "table":
            _print(verdict)
    if form == "table" and any(verdict.differs for verdict in verdicts):
        say(f"`lakejoin explain {config} RESULT --key K` says how a row came about")
    if form == "json":
        say_json([_plain(verdict) for verdict in verdicts])
    elif unverified := sum(bool(verdict.unverified) for verdict in verdicts):
        say(f"{unverified} of {len(verdicts)} not verified")
    if all(verdict.unverified for verdict in verdicts) or any(verdict.differs for verdict in verdicts):
        raise typer.Exit(FAILED)


def _names(pipeline: "Pipeline", result: str | None) -> list[str]:
    """What is to be verified. Raises `WrongUsage` for an unknown name."""
    from lakejoin.orchestration.errors import unknown

    if result is None:
        return list(pipeline.joins)
    if result not in pipeline.joins:
        raise unknown("join or groups", result, pipeline.joins)
    return [result]


def _snapshot(pipeline: "Pipeline", names: Sequence[str], batch: int | None) -> "Plan":
    from lakejoin.orchestration.lake_state.published_snapshot import published_snapshot
    from lakejoin.orchestration.lake_state.readable import check_readable
    from lakejoin.storage.lake.journal import Journal
    from lakejoin.storage.lake.layout import Lake

    journal = Journal(Lake(pipeline.lake))
    snapshot = published_snapshot(journal, batch)
    for name in names:
        for read in (name, *sorted(pipeline.spec_of_join(name).reads)):
            check_readable(pipeline, journal, snapshot, read, kept=batch is not None)
    return snapshot


def _part(pipeline: "Pipeline", result: str | None, sample: int | None, keys: Sequence[str]) -> "Part":
    """Which rows of it. Raises `WrongUsage` for options that do not go together."""
    from lakejoin.orchestration.errors import WrongUsage
    from lakejoin.orchestration.explain.log_rows import key_of
    from lakejoin.orchestration.verification.verify import Part

    if not keys:
        return Part(sample)
    if result is None or result not in pipeline.kept_by_key:
        raise WrongUsage("--key: name the join of tables, or the groups, that has the keys")
    if sample is not None:
        raise WrongUsage("give either --key or --sample")
    types, nulls = pipeline.keyed_spec(result).joined_key_type, result in pipeline.groups
    return Part(keys=[key_of("--key", text, types, nulls=nulls).values for text in keys])


def _print(verdict: "Verdict") -> None:
    if verdict.unverified:
        say(f"{verdict.name}: not verified: {verdict.unverified}")
        return
    found = verdict.comparison
    assert found is not None
    which = f", part {verdict.part} of {verdict.parts} by key" if verdict.parts > 1 else ""
    if not verdict.differs:
        trust = f"; with 95 % confidence at most {verdict.at_most:.2%} of all differ" if which else ""
        say(f"{verdict.name}: {found.rows:,} rows{which}: equal{trust}")
    else:
        say(f"{verdict.name}: {found.rows:,} rows{which}: not what DuckDB computes")
        print_differences(found, ("computed", "held"))
    if verdict.overlaps:
        say(f"  {verdict.overlaps:,} versions end before they begin, or go on when the next one has begun")
    for column in verdict.left_out:
        say(f"  not compared: {column}")


def _plain(verdict: "Verdict") -> dict[str, Any]:
    return {
        "name": verdict.name,
        "unverified": verdict.unverified or None,
        "part": verdict.part,
        "parts": verdict.parts,
        "left_out": list(verdict.left_out),
        "overlaps": verdict.overlaps,
    } | (verdict.comparison.plain() if verdict.comparison else {})
