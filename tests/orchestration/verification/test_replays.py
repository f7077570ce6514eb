"""What a replay reads and what it compares: the same declarations, without columns that the order of rows decides."""

from pathlib import Path

import pytest

from lakejoin.orchestration.config import Pipeline, load
from lakejoin.orchestration.runs.replay import second_lake
from lakejoin.orchestration.verification.order_dependent import order_dependent

TEXT = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {format: jsonl, path: "orders/{date}.jsonl"}
    columns: {id: int, customer: string, weight: double, pieces: int}
    key: [id]
  materialized:
    source: {format: jsonl, path: "customers/{date}.jsonl"}
    columns: {customer: string, materialized: int}
    key: [customer]
joins:
  told:
    left: orders
    right: sums
    foreign_key: [customer]
    how: left
    prefix: all_
    select: [id, {text: cast(all_kilos as string)}, {many: cast(all_pieces as int)}, {heavy: all_kilos > 3}, weight]
    materialized: {table: shop.told}
    history: {materialized: {table: shop.told_history}}
  again: {left: told, right: materialized, foreign_key: [text], how: left, prefix: c_}
  full: {left: orders, right: sums, foreign_key: [customer], how: left, prefix: all_}
  plain: {left: orders, right: materialized, foreign_key: [customer], how: left, prefix: c_}
groups:
  sums:
    of: orders
    by: [customer]
    select: {kilos: sum(weight), pieces: sum(pieces), mean: avg(pieces), heaviest: max(weight)}
  texts: {of: again, by: [text], select: {rows: count(*), ids: "collect(id, order by heavy)", most: max(many)}}
"""


@pytest.fixture
def shop(tmp_path: Path) -> Pipeline:
    """Return the pipeline."""
    path = tmp_path / "lakejoin.yaml"
    path.write_text(TEXT)
    return load(path)


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("orders", set()), ("plain", set()), ("sums", {"kilos"}), ("full", {"all_kilos"}),
        ("told", {"text", "heavy"}), ("again", {"text", "heavy"}), ("texts", {"text", "ids"}),
    ],
)  # fmt: skip
def test_what_is_made_of_floating_sums_depends_on_order(shop: Pipeline, name: str, columns: set[str]) -> None:
    """Whatever its type, through all results; what only stands beside it does not."""
    assert order_dependent(shop, name) == columns


def test_second_lake_is_of_the_same_pipeline_and_in_no_catalog(shop: Pipeline) -> None:
    """Names stay, whatever they are; the folder is gone afterwards."""
    with second_lake(shop) as second:
        lake = Path(second.lake)
        lake.mkdir()
        assert second.shape == shop.shape
        assert second.tables["orders"].source == shop.tables["orders"].source
        assert not second.joins["told"].declared.table
        assert not second.joins["told"].declared_history.table
        assert shop.joins["told"].declared.table == "shop.told"
    assert not lake.parent.exists()
