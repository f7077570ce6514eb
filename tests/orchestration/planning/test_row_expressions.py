"""Which foreign keys may fail for rows that no batch has refused for it: those are asked in the job of the gate."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from lakejoin.orchestration.config import load_text
from lakejoin.orchestration.planning.row_expressions import foreign_key_not_asked
from lakejoin.storage.lake.plan import Plan

PIPELINE = load_text(
    """\
name: shop
lake: ./lake
tables:
  orders: {source: {format: jsonl, path: orders}, columns: {id: int, code: string}, key: [id]}
  events: {source: {format: debezium, path: events}, columns: {id: int, code: string}, key: [id]}
  partial: {source: {format: jsonl, path: partial, absent: keep}, columns: {id: int, code: string}, key: [id]}
  customers: {source: {format: jsonl, path: customers}, columns: {id: int}, key: [id]}
joins:
  plain: {left: orders, right: customers, foreign_key: [id], how: left}
  number: {left: orders, right: customers, foreign_key: ["cast(code as int)"], how: left}
  constant: {left: orders, right: customers, foreign_key: ["1 + 1"], how: left}
  over: {left: plain, right: customers, foreign_key: ["cast(code as int)"], how: left, prefix: of_}
  over_plain: {left: plain, right: customers, foreign_key: [right_id], how: left, prefix: of_}
  of_partial: {left: partial, right: customers, foreign_key: ["cast(code as int)"], how: left}
  of_events: {left: events, right: customers, foreign_key: ["cast(code as int)"], how: left}
""",
    "/etc/shop.yaml",
)
PLAN = Plan(
    1, "batch", datetime(2024, 1, 1, tzinfo=UTC), (), {}, {}, {}, tuple(PIPELINE.joins), (), "", {}, "0.1"
)
ALL = replace(PLAN, kind="bootstrap", bootstrap=tuple(PIPELINE.joins))


@pytest.mark.parametrize(
    ("plan", "asked"),
    [(PLAN, {"over", "of_partial", "of_events"}), (ALL, {"number", "over", "of_partial", "of_events"})],
    ids=["batch", "joins that begin"],
)
def test_rows_are_asked_where_no_record_was(plan: Plan, asked: set[str]) -> None:
    """Those of another join, of records that may leave values out, and what a join begins with; never for a column."""
    found = {name: foreign_key_not_asked(PIPELINE, plan, name) for name in PIPELINE.joins}
    assert {name: [key.text for key in keys] for name, keys in found.items() if keys} == {
        name: ["cast(code as int)"] for name in asked
    }
