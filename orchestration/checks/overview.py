"""Gathers how much each table holds, how old that is and how its input was, for the first page of Data Docs."""

from collections.abc import Sequence
from datetime import UTC, datetime

from lakejoin.expectations.overview import Expected, Overview, Read, Standing
from lakejoin.orchestration.checks.figures import Figure
from lakejoin.orchestration.checks.references import Dangling
from lakejoin.orchestration.config import Pipeline
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake, joined_of
from lakejoin.storage.lake.plan import Published
from lakejoin.storage.lake.table_counts import row_count

BATCHES = 30
"""So many last batches make the trend."""


def overview(
    pipeline: Pipeline, journal: Journal, figures: Sequence[Figure], dangling: Sequence[Dangling]
) -> Overview:
    """Return what the page says above the rules. `journal`: that of the lake, with a finished batch."""
    return Overview(
        f"{pipeline.name} as of batch {len(journal.published)}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        [*_inputs(pipeline, journal), *_results(pipeline, journal)],
        [
            *[Expected(one.subject, one.name, one.told, one.bound.text, holds=one.holds) for one in figures],
            *[
                Expected(
                    one.name,
                    "dangling",
                    f"{one.dangling:,} of {one.left_rows:,} foreign keys ({one.share:.2%})",
                    one.bound.text,
                    holds=not one.exceeds,
                )
                for one in dangling
            ],
        ],
    )


def _inputs(pipeline: Pipeline, journal: Journal) -> list[Standing]:
    last = journal.published[-1]
    found = []
    for name in pipeline.inputs:
        fed = [batch for batch in journal.published if batch.tables.get(name, {}).get("records")]
        counts = [(batch.batch, batch.tables[name]) for batch in fed[-BATCHES:]]
        trend = [Read(number, of["records"], of.get("quarantined", 0)) for number, of in counts]
        found.append(Standing(name, last.rows.get(name), _last(fed), trend))
    return found


def _results(pipeline: Pipeline, journal: Journal) -> list[Standing]:
    lake, last = Lake(pipeline.lake), journal.published[-1]
    found = []
    for name in pipeline.joins:
        version = last.versions.get(joined_of(name))
        rows = None if version is None else row_count(lake, joined_of(name), version)
        changed = _last([b for b in journal.published if b.joins.get(name, {}).get("emissions")])
        found.append(Standing(name, rows, changed, ()))
    return found


def _last(batches: Sequence[Published]) -> str:
    """Which batch was the last of some, with its dates and the time at which it was planned."""
    if not batches:
        return "never"
    batch = batches[-1]
    dates = f" ({batch.dates[-1]})" if batch.dates else ""
    return f"batch {batch.batch}{dates}, {batch.planned_at:%Y-%m-%d %H:%M} UTC"
