"""Figures are held against what the file expects of them, by every command and page that shows them."""

import json
import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import Result
from prometheus_client.parser import text_string_to_metric_families
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from lakejoin.orchestration.checks.check_lake import check_lake
from lakejoin.orchestration.checks.figures import Figure, figures, lags
from lakejoin.orchestration.cli import app, options
from lakejoin.orchestration.config import Pipeline, load, load_text
from lakejoin.orchestration.runs.run import run_batches
from lakejoin.storage.errors import SourceUnreadable
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake

_TEXT = """\
name: shop
lake: ./lake
expect: {quarantined: "< 20 %", lag: "< 15 minutes", dangling: "<= 50 %"}
tables:
  orders:
    source: {format: jsonl, path: "orders/{date}.jsonl"}
    columns: {id: int, ref: int}
    key: [id]
    expect: {quarantined: "<= 50 %"}
  customers:
    source: {format: jsonl, path: "customers/{date}.jsonl"}
    columns: {id: int, name: string}
    key: [id]
    expect: {lag: "< 2 hours"}
joins:
  sold: {left: orders, right: customers, foreign_key: [ref], how: left, prefix: c_}
  sure: {left: orders, right: customers, foreign_key: [ref], how: inner, prefix: c_, max_dangling: 80 %}
"""
HOUR = 3600.0


def arrive(folder: Path, table: str, day: str, records: list[str], age: float = HOUR) -> None:
    """Write a file that was left alone for a while."""
    path = folder / table / f"{day}.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{record}\n" for record in records))
    os.utime(path, (time.time() - age,) * 2)


def order(number: int, ref: int) -> str:
    """Return a record of an order."""
    return json.dumps({"op": "u", "id": number, "ref": ref})


@pytest.fixture
def shop(tmp_path: Path) -> Pipeline:
    """Return a pipeline that expects something of its figures."""
    path = tmp_path / "lakejoin.yaml"
    path.write_text(_TEXT)
    arrive(tmp_path, "customers", "2024-01-01", ['{"op": "u", "id": 7, "name": "Ada"}'])
    arrive(tmp_path, "orders", "2024-01-01", [order(1, 7), order(2, 7), order(3, 8), "broken"])
    return load(path)


def told(found: Sequence[Figure]) -> dict[tuple[str, str], tuple[str, bool]]:
    """Return what is said of each figure, and whether it is as expected."""
    return {(one.subject, one.name): (one.told, one.holds) for one in found}


def test_a_table_says_itself_what_is_expected_or_else_the_pipeline(shop: Pipeline) -> None:
    """Each figure on its own."""
    orders, customers = shop.expected_of("orders"), shop.expected_of("customers")
    assert orders.quarantined is not None
    assert orders.lag is not None
    assert (orders.quarantined.text, orders.lag.limit) == ("<= 50 %", 900)
    assert customers.quarantined is not None
    assert customers.lag is not None
    assert (customers.quarantined.limit, customers.lag.text) == (0.2, "< 2 hours")
    bounds = {name: shop.dangling_bound(name, "") for name in ("sold", "sure")}
    assert {name: bound and bound.text for name, bound in bounds.items()} == {
        "sold": "<= 50 %",
        "sure": "<= 80 %",
    }


def test_a_bound_excludes_its_limit_unless_it_says_otherwise(shop: Pipeline) -> None:
    """`<` and `<=` mean what they say."""
    below, at_most = shop.expect.quarantined, shop.inputs["orders"].expect.quarantined
    assert below is not None
    assert at_most is not None
    assert (below.allows(0.19), below.allows(0.2), below.allows(0.21)) == (True, False, False)
    assert (at_most.allows(0.5), at_most.allows(0.51)) == (True, False)


def test_lag_is_how_long_the_oldest_unread_file_has_waited(shop: Pipeline, tmp_path: Path) -> None:
    """An hour is too long for orders and not for customers."""
    arrive(tmp_path, "orders", "2024-01-02", [order(4, 7)], age=60)
    now = datetime.now(UTC)
    assert {one.subject: one.holds for one in lags(shop, now)} == {"orders": False, "customers": True}
    assert all(one.found is not None and HOUR <= one.found < HOUR + 60 for one in lags(shop, now))
    later = now + timedelta(hours=1)
    assert {one.subject: one.holds for one in lags(shop, later)} == {"orders": False, "customers": False}


def test_a_lag_that_nobody_can_tell_is_not_as_expected(
    shop: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A source that cannot be listed is told with its reason, and is no error."""

    def unreadable(*_: object) -> None:
        raise SourceUnreadable("no broker answers")

    monkeypatch.setattr("lakejoin.orchestration.checks.figures.unasked_backlog", unreadable)
    assert told(lags(shop, datetime.now(UTC))) == {
        ("orders", "lag"): ("unknown: no broker answers", False),
        ("customers", "lag"): ("unknown: no broker answers", False),
    }


def test_a_source_without_a_bound_is_not_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A listing may be dear."""
    text = _TEXT.replace(', lag: "< 15 minutes"', "").replace('    expect: {lag: "< 2 hours"}\n', "")
    pipeline = load_text(text, tmp_path / "lakejoin.yaml")
    monkeypatch.setattr(
        "lakejoin.orchestration.checks.figures.unasked_backlog", lambda *_: pytest.fail("listed")
    )
    assert not lags(pipeline, datetime.now(UTC))


@pytest.fixture
def filled(shop: Pipeline, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    """Return a pipeline whose second day has one good record of four."""
    monkeypatch.setattr(options, "open_session", lambda *_, **__: spark)
    arrive(tmp_path, "orders", "2024-01-02", [order(4, 9), "broken", "broken", "broken"])
    list(run_batches(shop, spark, batch_by="date"))
    return shop


def printed(command: str, pipeline: Pipeline, *arguments: str) -> Result:
    """Return what a command prints."""
    return CliRunner().invoke(app, [command, str(pipeline.path), *arguments])


@pytest.mark.spark
def test_every_command_holds_figures_against_the_file(filled: Pipeline, spark: SparkSession) -> None:
    """Of all records half are quarantined, which may be; of the last batch three of four, which may not."""
    journal, now = Journal(Lake(filled.lake)), datetime.now(UTC)
    assert told(figures(filled, journal, now, first=None)) == {
        ("orders", "quarantined"): ("4 of 8 records (50.00%)", True),
        ("customers", "quarantined"): ("0 of 1 records (0.00%)", True),
        ("orders", "lag"): ("nothing waits", True),
        ("customers", "lag"): ("nothing waits", True),
    }
    last = told(figures(filled, journal, now, first=2))["orders", "quarantined"]
    assert last == ("3 of 4 records (75.00%)", False)

    shown = printed("check", filled)
    assert shown.exit_code == 1
    assert "orders     quarantined  3 of 4 records (75.00%)  <= 50 %       EXCEEDED" in shown.stdout
    status = json.loads(printed("status", filled, "--format", "json").stdout)
    assert status["expected"][0] == {
        "table": "orders", "figure": "quarantined", "found": 0.5, "expected": "<= 50 %", "holds": True
    }  # fmt: skip

    whole = check_lake(filled, spark, batches=None)
    assert whole.passed
    assert {one.name: (one.dangling, one.exceeds) for one in whole.dangling} == {
        "sold": (2, False),
        "sure": (2, False),
    }
    assert whole.docs is not None
    page = whole.docs.index.read_text()
    assert "<td>orders</td><td>quarantined</td><td>4 of 8 records (50.00%)</td><td>&lt;= 50 %</td>" in page
    assert "<td>sold</td><td>dangling</td><td>2 of 4 foreign keys (50.00%)</td><td>&lt;= 50 %</td>" in page
    assert "<title>batch 2: 4 records, 3 quarantined</title>" in page


@pytest.mark.spark
def test_metrics_are_sums_over_batches_and_what_waits(filled: Pipeline, tmp_path: Path) -> None:
    """In the format that Prometheus reads, the same in a file as printed but for what the clock moves."""
    arrive(tmp_path, "orders", "2024-01-03", [order(5, 7)])
    into = tmp_path / "lakejoin.prom"
    assert printed("metrics", filled, "--into", str(into)).exit_code == 0
    text = into.read_text()
    values = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            assert sample.labels.pop("pipeline") == "shop"
            labels = [sample.labels[name] for name in sorted(sample.labels)]
            values[(sample.name.removeprefix("lakejoin_"), *labels)] = sample.value
    assert values["batches_total", "batch"] == 2
    assert values["table_records_total", "quarantined", "orders"] == 4
    assert values["rows", "sold"] == 4
    assert values["quarantine_open_records", "parse_error", "orders"] == 4
    assert (values["pending", "orders"], values["pending", "customers"]) == (1, 0)
    assert HOUR <= values["lag_seconds", "orders"] < 2 * HOUR
    met = {key[1:]: value for key, value in values.items() if key[0] == "expectation_met"}
    assert met == {
        ("quarantined", "orders"): 1, ("quarantined", "customers"): 1, ("lag", "orders"): 0, ("lag", "customers"): 1
    }  # fmt: skip
    again = printed("metrics", filled).stdout
    assert [line for line in again.splitlines() if "lag_seconds" not in line] == [
        line for line in text.splitlines() if "lag_seconds" not in line
    ]


@pytest.mark.spark
def test_trend_has_a_line_for_each_batch(filled: Pipeline) -> None:
    """With what became of its records, and how many rows changed."""
    trend = json.loads(printed("status", filled, "--trend", "--format", "json").stdout)
    figures_of = ("batch", "dates", "records", "quarantined", "emissions")
    assert [tuple(point[name] for name in figures_of) for point in trend] == [
        (1, ["2024-01-01"], 5, 1, 5),
        (2, ["2024-01-02"], 4, 3, 1),
    ]
    assert "The last 2 of 2 batches" in printed("status", filled, "--trend").stdout
