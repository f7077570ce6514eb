"""Unit tests of a pipeline run on the real engine, side by side, and none sees a row of another."""

import re
from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from lakejoin.orchestration.cli import app, options
from lakejoin.orchestration.config import load
from lakejoin.orchestration.unit_tests import running
from lakejoin.orchestration.unit_tests.declared import file_of_tests, read_tests
from lakejoin.orchestration.unit_tests.outcome import Difference
from lakejoin.orchestration.unit_tests.running import run_tests

pytestmark = pytest.mark.spark
PAGE = Path(__file__).resolve().parents[2] / "docs" / "unit-tests.md"


def test_page_of_unit_tests_says_what_is_printed(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files run as they stand; a test that expects something else says what came, and how; update writes it."""
    monkeypatch.setattr(options, "open_session", lambda pipeline: spark)
    monkeypatch.chdir(tmp_path)
    for name, text in re.findall(r"```yaml\n# [^\n]*, in (\S+)\n(.*?)```", PAGE.read_text(), re.DOTALL):
        Path(name).write_text(f"# The first line\n{text}")
    tests = Path("shop_tests.yaml")

    ran = CliRunner().invoke(app, ["test", "shop.yaml", "--junit", "out.xml"])
    assert re.fullmatch(r"4 tests in .* s: 4 passed, 0 failed\n", ran.stdout), ran.stdout
    assert 'tests="4" failures="0"' in Path("out.xml").read_text()
    assert {path.name for path in Path().iterdir()} == {"shop.yaml", "shop_tests.yaml", "out.xml"}

    right = tests.read_text()
    tests.write_text(right.replace("{id: 1, c_city: Rome}", "{id: 1, c_city: Paris}"))
    ran = CliRunner().invoke(app, ["test", "shop.yaml", "--only", "moves"])
    assert ran.exit_code == 1
    told = re.findall(r"```console\n.*?```", PAGE.read_text(), re.DOTALL)[1].splitlines()[2:7]
    printed = ran.stdout.replace(f"{tmp_path}/", "").splitlines()
    assert printed[:5] == told
    assert re.fullmatch(r"1 test in .* s: 0 passed, 1 failed", printed[-1])
    assert CliRunner().invoke(app, ["test", "shop.yaml", "--only", "moves", "--update"]).exit_code == 0
    assert tests.read_text() == right


SHOP = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {format: jsonl, path: "orders/{date}.jsonl"}
    columns: {id: bigint, customer: string, product: int, pieces: int, since: timestamp}
    key: [id]
    where: pieces > 0
  customers:
    source: {format: jsonl, path: "customers/{date}.jsonl"}
    columns: {id: string, city: string}
    key: [id]
  products:
    source: {format: jsonl, path: "products/{date}.jsonl"}
    columns: {product: int, name: string}
    key: [product]
  weather:
    source: {format: jsonl, path: "weather/{date}.jsonl"}
    columns: {city: string, sky: string, at: timestamp}
    key: [city]
    event_time: at
    versioned: {history_retention: 10 days}
streams:
  visits:
    source: {format: jsonl, path: "visits/{date}.jsonl"}
    columns: {visit: bigint, city: string, at: timestamp}
    key: [visit]
    event_time: at
joins:
  pairs:
    {left: orders, right: customers, foreign_key: [upper(customer)], how: inner, result_key: combined, prefix: c_,
     select: [c_id, id, {where_to: c_city}], changelog: true}
  full:
    left: orders
    rights:
      customer: {table: customers, foreign_key: [upper(customer)], how: left}
      product: {table: products, foreign_key: [product], how: inner}
    select: ["* except (since)", {label: "concat(product_name, ' ', cast(pieces as string))"}]
    history: true
  compared: {left: full, right: by_city, foreign_key: [customer_city], how: left, prefix: all_, resolution: highwater}
  skies: {stream: visits, table: weather, foreign_key: [city], how: left, grace: 1 hour, prefix: w_}
groups:
  by_city:
    {of: full, by: [{city: customer_city}], select: {pieces: sum(pieces), first: "first(label, order by id)"},
     having: pieces > 1}
"""
TESTS = """\
given twice, once with another city:
  given: &given
    customers: [{id: A, city: Paris}]
    products: [{product: 1, name: pen}]
    orders: [{id: 1, customer: a, product: 1, pieces: 2}, {id: 2, customer: b, product: 1, pieces: 0}]
  expect: &expected
    pairs: [{c_id: A, id: 1, where_to: Paris}]
    full: [{id: 1, label: pen 2, customer_city: Paris}]
    by_city: [{city: Paris, pieces: 2, first: pen 2}]
    compared: [{id: 1, all_city: Paris, all_pieces: 2}]
    full.history: 1
    orders: 1
the same again:
  given: *given
  expect: *expected
the city changes, and the order is deleted in the end:
  given: *given
  when:
    - customers: [{id: A, city: Rome}]
    - orders: [{op: d, id: 1}]
  expect:
    pairs: []
    full: 0
    by_city: 0
    pairs.changelog: 3
    full.history: 2
only the customer:
  given: {customers: [{id: A, city: Rome}]}
  expect: {full: 0, pairs: [], customers: [{id: A, city: Rome}]}
only the order, without a match:
  given: {orders: [{id: 1, customer: a, product: 1, pieces: 5}], products: [{product: 1, name: ink}]}
  expect:
    pairs: []
    full: [{id: 1, customer_city: null}]
    by_city: [{city: null, pieces: 5}]
    compared: [{id: 1, all_city: null}]
what is wrong is told of the test that says it:
  given: {orders: [{id: 1, customer: a, product: 1, pieces: many}]}
  expect: {orders: [{id: 1, pieces: 5}]}
a visit meets the sky of its time:
  given:
    weather: [{city: Paris, sky: blue, at: "2026-01-01T10:00:00"}]
    visits: [{visit: 1, city: Paris, at: "2026-01-01T10:30:00"}]
  when:
    - weather: [{city: Paris, sky: grey, at: "2026-01-01T10:20:00"}]
    - visits: [{visit: 2, city: Rome, at: "2026-01-01T12:00:00"}]
  expect:
    skies: [{visit: 1, w_sky: grey}]
"""


def test_no_test_sees_rows_of_another(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same keys in all of them, over joins of every kind; one with a stream has a lake to itself."""
    path = tmp_path / "shop.yaml"
    path.write_text(SHOP)
    pipeline = load(path)
    file_of_tests(pipeline).write_text(TESTS)
    tests = read_tests(pipeline, file_of_tests(pipeline))
    made = []
    scratch = running.scratch_pipeline
    monkeypatch.setattr(
        running,
        "scratch_pipeline",
        lambda pipeline, tests, folder: made.append(len(tests)) or scratch(pipeline, tests, folder),
    )

    outcomes = {outcome.test.name: outcome for outcome in run_tests(pipeline, tests, lambda _: spark)}

    wrong = outcomes.pop("what is wrong is told of the test that says it")
    assert {name: outcome.differences for name, outcome in outcomes.items() if not outcome.passed} == {}
    assert list(outcomes) == [test.name for test in tests if test.name in outcomes]
    assert made == [6, 1]
    assert wrong.differences == {
        "quarantine": [
            Difference(
                None, {"table": "orders", "reason": "type_mismatch", "detail": 'pieces: "many" is no int'}
            )
        ],
        "orders": [Difference({"id": 1, "pieces": 5}, None)],
    }
    assert wrong.explained
    assert not [line for line in wrong.explained if "lakejoin_test" in line]
    assert all(one.test.line < other.test.line for one, other in pairwise(outcomes.values()))


def test_batch_that_fails_is_told_of_the_test_that_made_it_fail(tmp_path: Path, spark: SparkSession) -> None:
    """The others are run without it."""
    path = tmp_path / "shop.yaml"
    path.write_text(SHOP)
    pipeline = load(path)
    file_of_tests(pipeline).write_text(
        "good: {given: {customers: [{id: A, city: Rome}]}, expect: {customers: 1}}\n"
        "bad: {given: {customers: [{id: B, city: Rome}]}, expect: {customers: 1}}\n"
    )
    good, bad = read_tests(pipeline, file_of_tests(pipeline))
    run_batches = running.run_batches
    with pytest.MonkeyPatch.context() as patch:

        def fails(scratch: object, *args: object, **options: object) -> object:
            if '"B"' in next(Path(scratch.lake).parent.glob("customers/*")).read_text():  # type: ignore[attr-defined]
                raise running.LakejoinError("customers: refused")
            return run_batches(scratch, *args, **options)  # type: ignore[arg-type]

        patch.setattr(running, "run_batches", fails)
        outcomes = {
            outcome.test.name: outcome.error for outcome in run_tests(pipeline, [good, bad], lambda _: spark)
        }
    assert outcomes == {"good": None, "bad": "customers: refused"}
