"""Streams, histories and their joins in Dagster: graph, columns, checks, what a batch says of them. No Spark."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from dagster import AssetKey, TableSchema

from lakejoin.expectations.rules import rules_for
from lakejoin.orchestration.config import Pipeline, load_text
from lakejoin.orchestration.defs.asset_keys import lake_assets
from lakejoin.orchestration.defs.code_location import pipeline_definitions
from lakejoin.orchestration.defs.embedded_pipeline import EmbeddedPipeline
from lakejoin.orchestration.defs.maintenance_job import _observations
from lakejoin.orchestration.defs.materializations import batch_metadata
from lakejoin.orchestration.maintenance.maintain import Done
from lakejoin.orchestration.maintenance.steps import Leftovers, Step
from lakejoin.storage.delta_log.live_files import Extent
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.lake.plan import Published

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
CLOCK = datetime(2013, 1, 2, tzinfo=UTC)
TEXT = """\
name: clicks
lake: ./lake
tables:
  prices:
    source: {format: jsonl, path: prices.jsonl}
    columns: {item: string, price: bigint, at: timestamp}
    key: [item]
    event_time: at
    versioned: {history_retention: 10 days}
  items: {source: {format: jsonl, path: items.jsonl}, columns: {item: string, label: string}, key: [item]}
streams:
  clicks:
    source: {format: jsonl, path: clicks.jsonl}
    columns: {id: bigint, item: string, kind: string, at: timestamp}
    key: [id]
    event_time: at
    where: "kind = 'buy'"
joins:
  priced: {stream: clicks, table: prices, foreign_key: [item], how: left, grace: 2 hours}
  labelled: {stream: clicks, table: items, foreign_key: [item], how: inner, prefix: item_}
"""


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    """Return a pipeline with a join that waits and one that does not."""
    return load_text(TEXT, tmp_path / "lakejoin.yaml")


def test_graph_leads_through_buffer_and_history(pipeline: Pipeline) -> None:
    """With grace from the stream through the buffer, beside the history; without it from stream and table."""
    graph = pipeline_definitions(EmbeddedPipeline(pipeline), NOW).resolve_asset_graph()

    parents = {
        "/".join(key.path[1:]): {"/".join(parent.path[1:]) for parent in graph.get(key).parent_keys}
        for key in graph.get_all_asset_keys()
    }

    assert parents == {
        **{f"{name}/{name}_source": set() for name in ("prices", "items", "clicks")},
        **{name: {f"{name}/{name}_source"} for name in ("prices", "items", "clicks")},
        "prices/prices_versions": {"prices"},
        "priced/priced_buffer": {"clicks"},
        "priced": {"priced/priced_buffer", "prices/prices_versions"},
        "labelled": {"clicks", "items"},
    }


def test_rules_of_time_are_checks_of_what_they_are_about(pipeline: Pipeline) -> None:
    """The history's at the history, a join's at its joined table, and those of batches at the buffer."""
    graph = pipeline_definitions(EmbeddedPipeline(pipeline), NOW).resolve_asset_graph()
    found: dict[str, set[str]] = {}
    for check in graph.asset_check_keys:
        found.setdefault("/".join(check.asset_key.path[1:]), set()).add(check.name)

    assert found["prices/prices_versions"] == {rule.name for rule in rules_for("history")}
    assert found["priced"] == {rule.name for rule in rules_for("stream_left")}
    assert found["labelled"] == {rule.name for rule in rules_for("stream")}
    assert found["priced/priced_buffer"] == {rule.name for rule in rules_for("batches")}


def test_assets_say_what_they_hold(pipeline: Pipeline) -> None:
    """Descriptions name the sides; the columns of a history have its validity, those of a buffer the stream's."""
    specs = {
        spec.key: spec
        for spec in pipeline_definitions(EmbeddedPipeline(pipeline), NOW).resolve_all_asset_specs()
    }
    described = {"/".join(key.path[1:]): spec.description or "" for key, spec in specs.items()}

    assert "where kind = 'buy'" in described["clicks"]
    assert described["priced"].startswith("`clicks` left join `prices`, as it was at the record's time")
    assert described["labelled"].startswith("`clicks` inner join `items`, as it was in its batch")
    assert columns(specs[AssetKey(["clicks", "prices", "prices_versions"])].metadata) >= {
        "valid_from",
        "valid_to",
    }
    assert columns(specs[AssetKey(["clicks", "priced", "priced_buffer"])].metadata) >= {"kind", "_lj_verdict"}
    assert columns(specs[AssetKey(["clicks", "labelled"])].metadata) >= {"item_label", "_lj_time"}


def columns(metadata: object) -> set[str]:
    """Names of the columns that an asset's metadata holds."""
    assert isinstance(metadata, dict)
    schema = metadata["dagster/column_schema"]
    assert isinstance(schema, TableSchema)
    return {column.name for column in schema.columns}


def test_figures_of_maintenance_are_on_the_asset_that_writes_the_table(tmp_path: Path) -> None:
    """Histories and buffers stand for the same table as their source; a folded base has names of its own there."""
    join = "  labels: {left: items, right: prices, foreign_key: [item], how: left, prefix: p_}\n"
    pipeline = load_text(TEXT + join, tmp_path / "lakejoin.yaml")
    tables = {
        "tables/prices/changes": ("prices", "files_after"),
        "tables/prices/rows": ("prices", "rows_files_after"),
        "tables/prices/versions": ("prices/prices_versions", "versions_files_after"),
        "streams/clicks/records": ("clicks", "files_after"),
        "joins/priced/joined": ("priced", "files_after"),
        "joins/labels/subscription_log": ("labels/labels_subscription_log", "files_after"),
        "joins/labels/subscription_store": (
            "labels/labels_subscription_log",
            "subscription_store_files_after",
        ),
        "quarantine": None,
    }
    done = [Done(Step("fold", table, Leftovers(1, 1)), Extent(9, 9, 9), Extent(2, 7, 9)) for table in tables]
    found = {
        observation.metadata["table"].value: observation
        for observation in _observations(EmbeddedPipeline(pipeline), done)
    }

    assert found.keys() == {table for table, place in tables.items() if place}
    for table, observation in found.items():
        key, name = tables[table]
        assert "/".join(observation.asset_key.path[1:]) == key
        assert observation.metadata[name].value == 2


def test_batch_tells_clocks_and_what_waits(pipeline: Pipeline) -> None:
    """The watermark of a history is its table's clock, that of buffer and joined table the join's stream time."""
    published = Published(
        batch=3, kind="batch", planned_at=NOW, dates=(), versions={}, commits={}, rows={}, seconds={},
        tables={"prices": {"versions": 5, "history": 2, "expired": 1}, "clicks": {"records": 9, "late": 1}},
        joins={"priced": {"received": 9, "buffered": 8, "late": 1, "released": 6, "waiting": 4, "emissions": 6}},
        clocks={"tables/prices": CLOCK, "joins/priced": CLOCK},
        files={
            "tables/prices/rows": {"read": 2, "held": 8}, "tables/prices/changes": {"read": 1, "held": 3},
            "tables/prices/versions": {"read": 4, "held": 4},
        },
    )  # fmt: skip
    lake = Lake(pipeline.lake)
    told = {
        "/".join(asset.key.path[1:]): batch_metadata(asset, published, lake, Journal(lake))
        for asset in lake_assets(EmbeddedPipeline(pipeline))
    }

    assert told["priced/priced_buffer"]["waiting"] == 4
    assert told["priced/priced_buffer"]["watermark"] == told["priced"]["watermark"] == CLOCK.isoformat()
    assert (told["prices/prices_versions"]["history"], told["prices/prices_versions"]["expired"]) == (2, 1)
    assert told["prices/prices_versions"]["watermark"] == CLOCK.isoformat()
    assert told["clicks"]["late"] == 1
    assert (told["prices"]["files_read"], told["prices"]["files_held"]) == (3, 11)
    assert told["prices/prices_versions"]["files_read"] == 4
    assert "files_read" not in told["clicks"]
    assert "watermark" not in told["labelled"]


def test_history_by_event_time_is_made_of_both_histories(tmp_path: Path) -> None:
    """Its rules are checks of the join, its description names the sides, and a batch says until when it is settled."""
    text = """\
name: shop
lake: ./lake
tables:
  sales:
    source: {format: jsonl, path: sales.jsonl}
    columns: {id: bigint, item: string, at: timestamp}
    key: [id]
    event_time: at
    versioned: {history_retention: 10 days}
  prices:
    source: {format: jsonl, path: prices.jsonl}
    columns: {item: string, price: bigint, at: timestamp}
    key: [item]
    event_time: at
    versioned: {history_retention: 10 days}
joins:
  sold: {left: sales, right: prices, foreign_key: [item], how: left, history: {as_of: event_time}}
"""
    pipeline = load_text(text, tmp_path / "lakejoin.yaml")
    definitions = pipeline_definitions(EmbeddedPipeline(pipeline), NOW)
    graph, history = definitions.resolve_asset_graph(), AssetKey(["shop", "sold", "sold_history"])
    specs = {spec.key: spec for spec in definitions.resolve_all_asset_specs()}
    (asset,) = [asset for asset in lake_assets(EmbeddedPipeline(pipeline)) if asset.key == history]
    published = Published(
        batch=1, kind="batch", planned_at=NOW, dates=(), versions={}, commits={}, rows={}, seconds={}, tables={},
        joins={}, clocks={"histories/sold": CLOCK},
    )  # fmt: skip
    lake = Lake(pipeline.lake)

    assert {"/".join(key.path[1:]) for key in graph.get(history).parent_keys} == {
        "sales/sales_versions",
        "prices/prices_versions",
    }
    assert "by the event times of `sales` and `prices`" in (specs[history].description or "")
    checks = {check.name for check in graph.asset_check_keys if check.asset_key.path[-1] == "sold"}
    assert checks >= {rule.name for rule in rules_for("event_versions")}
    assert batch_metadata(asset, published, lake, Journal(lake))["settled_until"] == CLOCK.isoformat()
