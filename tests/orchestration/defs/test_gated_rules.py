"""Which rules need not be looked at after a run: those that the gates of its batches have judged."""

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lakejoin.orchestration.config import Pipeline, load_text
from lakejoin.orchestration.defs.gated_rules import judged_by_gates
from lakejoin.storage.lake.plan import Published

_TEXT = """\
name: shop
lake: ./lake
tables:
  orders: {source: {format: jsonl, path: o.jsonl}, columns: {id: int, a: int, b: int}, key: [id]}
  items: {source: {format: jsonl, path: i.jsonl}, columns: {id: int, name: string}, key: [id]}
  prices:
    source: {format: jsonl, path: p.jsonl}
    columns: {id: int, price: int, at: timestamp}
    key: [id]
    event_time: at
    versioned: {history_retention: 10 days}
streams:
  clicks:
    {source: {format: jsonl, path: c.jsonl}, columns: {n: int, item: int, at: timestamp}, key: [n], event_time: at}
joins:
  sold: {left: orders, right: items, foreign_key: [a], how: left, history: true}
  later: {left: orders, right: items, foreign_key: [b], how: inner}
  star:
    left: orders
    rights: {one: {table: items, foreign_key: [a], how: left}, two: {table: items, foreign_key: [b], how: left}}
  clicked: {stream: clicks, table: prices, foreign_key: [item], how: left}
groups:
  by_a: {of: orders, by: [a], select: {n: count(*)}}
  by_b: {of: orders, by: [b], select: {names: "collect(a)"}}
"""


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    """Return a pipeline with joins of every kind."""
    return load_text(_TEXT, tmp_path / "lakejoin.yaml")


def journal(*accepted: tuple[str, ...], begun: tuple[str, ...]) -> Any:
    """A journal with a batch for each set of accepted rules, which has begun some joins."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    published = [
        Published(
            batch=number, kind="batch", planned_at=now, dates=(), versions={}, commits={}, rows={}, seconds={},
            tables={}, joins={}, accepted=rules,
        )
        for number, rules in enumerate(accepted, start=1)
    ]  # fmt: skip
    return SimpleNamespace(published=published, kept=begun)


BEGUN = ("sold", "star", "clicked", "by_a", "by_b")


def test_joins_of_tables_and_the_rows_of_groups_are_judged(pipeline: Pipeline) -> None:
    """Not their histories, the totals of groups and joins of streams, nor a join that no batch has begun."""
    judged = judged_by_gates(pipeline, journal((), (), begun=BEGUN), 1)
    assert judged == {"sold", "star.one", "star.two", "by_b.rows"}


@pytest.mark.parametrize(("first", "judged"), [(1, False), (2, False), (3, True)])
def test_nothing_is_taken_for_judged_that_was_let_pass(
    pipeline: Pipeline, first: int, *, judged: bool
) -> None:
    """A batch that was published in spite of a rule has to be looked at; earlier ones do not matter."""
    batches = journal((), ("one_row_per_key",), (), begun=BEGUN)
    assert bool(judged_by_gates(pipeline, batches, first)) is judged
