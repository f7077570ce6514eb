"""Which changes of a configuration a lake takes, and which it refuses. No Spark here."""

import hashlib
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakejoin.orchestration.config import load_text
from lakejoin.orchestration.lake_state.active_joins import join_remains, new_joins, still_wanted
from lakejoin.orchestration.lake_state.config_fingerprints import (
    check_readings,
    check_shape,
    check_shapes,
    readings_of,
    shapes_of,
)
from lakejoin.orchestration.lake_state.expression_version import SPECIFICATION
from lakejoin.orchestration.lake_state.preflight import check_progress
from lakejoin.storage.errors import ConfigurationChanged, LakeInconsistent
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.lake.plan import Plan, Published
from lakejoin.storage.sources.planned.planned_file import PlannedFile
from lakejoin.transforms.model import hashing
from lakejoin.transforms.model.sql_settings import PINNED

TEXT = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {format: jsonl, path: "orders/{date}.jsonl", time: millis}
    columns: {id: bigint, customer: string, at: timestamp}
    key: [id]
    sequence: [at]
    event_time: at
  customers:
    source: {format: jsonl, path: "customers/{date}.jsonl"}
    columns: {customer: string, city: string}
    key: [customer]
joins:
  orders_with_customers: {left: orders, right: customers, foreign_key: [customer], how: left}
"""
BUILT = Plan(1, "batch", datetime(2024, 1, 1, tzinfo=UTC), (), {}, {}, {}, (), (), "", {}, "0.1")


def check(folder: Path, old: str, new: str) -> None:
    """Hold a changed text against a lake that was built with the text above."""
    path = folder / "lakejoin.yaml"
    journal = Journal(Lake(str(folder / "lake")))
    shapes = shapes_of(load_text(TEXT, path))
    journal.plans.append(replace(BUILT, joins=("orders_with_customers",), shapes=shapes))
    assert old in TEXT
    check_shapes(load_text(TEXT.replace(old, new), path), journal)


@pytest.mark.bad_input(16)
@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ('jsonl, path: "orders', 'csv, path: "orders', "5: tables.orders.source.format"),
        ("time: millis", "time: micros", "5: tables.orders.source.time"),
        ("time: millis", "time: millis, timezone: Europe/Berlin", "5: tables.orders.source.timezone"),
        ("at: timestamp}", "at: timestamp, total: int}", "6: tables.orders.columns"),
        ("    sequence: [at]\n", "", "4: tables.orders.sequence"),
        ("    event_time: at\n", "", "4: tables.orders.event_time"),
        ("city: string", "town: string", "12: tables.customers.columns"),
        ('"orders/{date}.jsonl"', '"orders/*.jsonl"', "5: tables.orders.source.path"),
        ('"orders/{date}.jsonl"', '"orders/{date}/{hour}.jsonl"', "5: tables.orders.source.path"),
        ("how: left", "how: inner", "15: joins.orders_with_customers.how"),
        ("how: left", "how: left, prefix: c_", "15: joins.orders_with_customers.prefix"),
        ("[customer], how", "[upper(customer)], how", "15: joins.orders_with_customers.foreign_key"),
    ],
)
def test_lake_refuses_what_it_was_not_built_with(tmp_path: Path, old: str, new: str, where: str) -> None:
    """The message names the line, the setting and the ways out."""
    with pytest.raises(ConfigurationChanged) as refused:
        check(tmp_path, old, new)

    assert str(refused.value).startswith(f"{tmp_path}/lakejoin.yaml:{where}: changed since batch 1, ")
    assert f"the state in {tmp_path}/lake was built with" in str(refused.value)
    assert "undo the change, " in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


def test_lake_that_reads_csv_of_its_own_form_goes_on(tmp_path: Path) -> None:
    """What shapes a lake and what only reads it stand in one plan: a name of both would hide one of them."""
    text = TEXT.replace("jsonl, path", 'csv, csv: {delimiter: ";", decimal: ","}, path')
    journal = Journal(Lake(str(tmp_path / "lake")))
    pipeline = load_text(text, tmp_path / "lakejoin.yaml")
    shapes, readings = shapes_of(pipeline), readings_of(pipeline)
    journal.plans.append(replace(BUILT, joins=("orders_with_customers",), shapes=shapes | readings))

    assert shapes.keys().isdisjoint(readings)
    check_shapes(load_text(text.replace('decimal: ","', "nulls: n/a"), pipeline.path), journal)
    with pytest.raises(
        ConfigurationChanged, match=r":5: tables\.orders\.source\.csv: changed since batch 1, "
    ):
        check_shapes(load_text(text.replace("delimiter", "quote"), pipeline.path), journal)


def test_every_change_is_a_line(tmp_path: Path) -> None:
    """All of them are reported at once."""
    with pytest.raises(ConfigurationChanged) as refused:
        check(tmp_path, TEXT[TEXT.index("    key: [id]") :], TEXT[TEXT.index("    key: [id]") :].replace(
            "[id]", "[id, at]").replace("how: left", "how: inner"))  # fmt: skip

    assert [line.split(": ")[1] for line in str(refused.value).splitlines()] == [
        "tables.orders.key",
        "joins.orders_with_customers.how",
    ]


STREAM = """\
streams:
  orders:
    source: {format: jsonl, path: "orders/{date}.jsonl", time: millis}
    columns: {id: bigint, customer: string, at: timestamp}
    key: [id]
    sequence: [at]
    event_time: at
"""


def test_name_of_a_table_is_not_taken_for_a_stream(tmp_path: Path) -> None:
    """Its files would count as read; and a join of another kind has other tables."""
    old = TEXT[TEXT.index("tables:") :]
    new = "tables:\n" + old[old.index("  customers:") : old.index("joins:")] + STREAM + (
        "joins:\n  orders_with_customers: {stream: orders, table: customers, foreign_key: [customer], how: left}\n"
    )  # fmt: skip
    with pytest.raises(ConfigurationChanged) as refused:
        check(tmp_path, old, new)
    lines = str(refused.value).splitlines()
    assert [line.split(": ")[1] for line in lines] == ["streams.orders", "joins.orders_with_customers"]
    assert all("was declared as something else until batch 1, " in line for line in lines)
    assert "or give it another name" in lines[0]


@pytest.mark.bad_input(49)
@pytest.mark.parametrize(
    ("changed", "done"),
    [
        ("orders", "changes/orders"),
        ("orders", "response_log/orders_with_customers"),
        ("customers", "quarantine/customers"),
    ],
)
def test_batch_is_finished_as_it_was_begun(tmp_path: Path, changed: str, done: str) -> None:
    """What was read in the old way is committed; where nothing of it is, the new way is as good."""
    path, limited = tmp_path / "lakejoin.yaml", f'"{changed}/{{date}}.jsonl", limits: {{line: 1 kB}}'
    plan = replace(BUILT, shapes=readings_of(load_text(TEXT, path)))
    other = load_text(TEXT.replace(f'"{changed}/{{date}}.jsonl"', limited), path)
    with pytest.raises(
        ConfigurationChanged, match=rf"tables\.{changed}\.source\.limits: .* batch 1 .*--replan"
    ):
        check_readings(other, plan, [done])
    unrelated = "changes/customers" if changed == "orders" else "changes/orders"
    check_readings(other, plan, [unrelated])
    check_readings(load_text(TEXT, path), plan, [done])


def test_changelog_is_not_switched_while_a_batch_is_under_way(tmp_path: Path) -> None:
    """What is committed of it would be nobody's: the end of the batch would not name it."""
    path = tmp_path / "lakejoin.yaml"
    plan = replace(BUILT, shapes=readings_of(load_text(TEXT, path)))
    other = load_text(TEXT.replace("how: left", "how: left, changelog: true"), path)
    with pytest.raises(ConfigurationChanged, match=r"joins\.orders_with_customers\.changelog: .* batch 1 "):
        check_readings(other, plan, ["subscription_log/orders_with_customers"])
    check_readings(other, plan, ["quarantine/orders"])


@pytest.mark.parametrize("said", [True, False])
def test_specification_of_hashes_is_a_part_of_what_a_join_was_built_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, said: bool
) -> None:
    """The first one where the plans do not say it. A join is computed anew; a batch is finished as it was begun."""
    pipeline = load_text(TEXT, tmp_path / "lakejoin.yaml")
    settings = shapes_of(pipeline) | readings_of(pipeline)
    kept = {
        name: shape for name, shape in settings.items() if said or not name.endswith("hash_specification")
    }
    journal = Journal(Lake(str(tmp_path / "lake")))
    journal.plans.append(replace(BUILT, joins=("orders_with_customers",), shapes=kept))
    check_shapes(pipeline, journal)
    check_readings(pipeline, journal.plans[0], ["changes/orders"])
    monkeypatch.setattr(hashing, "HASH_SPECIFICATION", 2)

    with pytest.raises(ConfigurationChanged) as refused:
        check_shapes(pipeline, journal)
    assert str(refused.value) == (
        f"{pipeline.path}:15: joins.orders_with_customers: this version of Lakejoin makes hashes by specification 2, "
        f"and the join in {pipeline.lake} has, as of batch 1, those of specification 1; compute it anew: `lakejoin run "
        f"{pipeline.path} --rebuild orders_with_customers`, or go on with version 0.1 of Lakejoin, which planned that "
        "batch"
    )
    check_shapes(pipeline, journal, ["orders_with_customers"])
    check_readings(pipeline, journal.plans[0], [])
    with pytest.raises(
        ConfigurationChanged, match=r"tables\.orders: .* specification 2, .* finish it with version"
    ):
        check_readings(pipeline, journal.plans[0], ["changes/orders"])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("name: shop", "name: other"),
        ("orders/{date}.jsonl", "moved/{date}.jsonl"),
        ("orders/{date}.jsonl", "orders/{year}-{month}-{day}.jsonl"),
        ("id: bigint", "id: long"),
        ("    event_time: at\n", "    event_time: at\n    tombstone_retention: 90 days\n"),
        ("    event_time: at\n", "    event_time: at\n    max_bad_ratio: 0.1\n"),
        ("how: left", "how: left, changelog: true"),
        (
            "joins:\n",
            "joins:\n  more: {left: orders, right: customers, foreign_key: [customer], how: inner}\n",
        ),
        (TEXT[TEXT.index("joins:") :], ""),
        ("joins:\n", "  more: {source: {format: csv, path: x}, columns: {id: int}, key: [id]}\njoins:\n"),
        ('{date}.jsonl", time', '{date}.jsonl", start: 2024-02-01, settle: 1 hour, time'),
    ],
)
def test_lake_takes_what_its_state_does_not_depend_on(tmp_path: Path, old: str, new: str) -> None:
    """Places, limits, other spellings of the same, and what is new or no longer declared."""
    check(tmp_path, old, new)


@pytest.mark.parametrize(
    ("old", "new", "joins"),
    [
        ("orders", "orders", ("orders_with_customers",)),
        (TEXT[TEXT.index("joins:") :], "", ()),
        ("orders_with_customers", "others", ()),
    ],
)
def test_batch_under_way_is_finished_without_removed_joins(
    tmp_path: Path, old: str, new: str, joins: tuple[str, ...]
) -> None:
    """A join that failed can so be taken out, or be given another name with what is corrected in it."""
    changed = load_text(TEXT.replace(old, new), tmp_path / "lakejoin.yaml")
    under_way = replace(BUILT, joins=("orders_with_customers",), bootstrap=("orders_with_customers",))

    plan = still_wanted(changed, under_way)

    assert (plan.joins, plan.bootstrap) == (joins, joins)


def test_batch_under_way_needs_the_tables_it_reads(tmp_path: Path) -> None:
    """What it was planned with may be removed when it is finished, not before."""
    file = PlannedFile("customers", "/x", "x", None, 1, 1, "", 1, True, 0, 1)
    changed = load_text(TEXT[: TEXT.index("  customers:")], tmp_path / "lakejoin.yaml")

    with pytest.raises(
        ConfigurationChanged, match=r"customers is no longer declared, but batch 1 .* Put it back"
    ):
        still_wanted(changed, replace(BUILT, files=(file,)))
    assert still_wanted(changed, BUILT) == BUILT


def lake_with(folder: Path, *joins: str) -> tuple[Lake, Journal]:
    """A lake with one finished batch that kept these joins, of each of which there is a table."""
    lake = Lake(str(folder / "lake"))
    journal = Journal(lake)
    shapes = shapes_of(load_text(TEXT, folder / "lakejoin.yaml"))
    journal.plans.append(replace(BUILT, joins=joins, shapes=shapes))
    commits = {f"joined/{name}": 1 for name in joins}
    counts = {name: {"answers": 0} for name in joins}
    now = BUILT.planned_at
    journal.published.append(Published(1, "batch", now, (), {}, commits, {}, counts, {}, {}))
    for name in joins:
        write_deltalake(f"{lake.root}/joins/{name}/joined", pa.table({"id": [1]}))
    return lake, journal


def test_join_that_was_added_is_new(tmp_path: Path) -> None:
    """All joins of a lake without batches begin with the first one; later ones start from the rows there are."""
    pipeline = load_text(TEXT, tmp_path / "lakejoin.yaml")
    empty = Lake(str(tmp_path / "empty"))
    lake, journal = lake_with(tmp_path)

    assert new_joins(pipeline, empty, Journal(empty)) == []
    assert new_joins(pipeline, lake, journal) == ["orders_with_customers"]
    journal.plans.append(replace(BUILT, batch=2, joins=("orders_with_customers",)))
    assert new_joins(pipeline, lake, journal) == []


def test_join_that_comes_back_must_begin_anew(tmp_path: Path) -> None:
    """Batches went by without it, so the tables it left behind are not what they should be."""
    pipeline = load_text(TEXT, tmp_path / "lakejoin.yaml")
    lake, journal = lake_with(tmp_path)
    write_deltalake(f"{lake.root}/joins/orders_with_customers/joined", pa.table({"id": [1]}))

    with pytest.raises(
        ConfigurationChanged, match=r"15: joins.orders_with_customers: .* `lakejoin run .* --rebuild "
    ):
        new_joins(pipeline, lake, journal)
    assert join_remains(lake, "orders_with_customers")
    assert not join_remains(lake, "others")


def test_join_that_begins_anew_may_be_another_one(tmp_path: Path) -> None:
    """Nothing that was kept of it is used."""
    _, journal = lake_with(tmp_path)

    check_shapes(load_text(TEXT.replace("how: left", "how: inner"), tmp_path / "lakejoin.yaml"), journal)


def test_table_of_a_declared_join_that_is_gone_stops_the_run(tmp_path: Path) -> None:
    """What is no longer declared may be removed from the lake; nothing else may."""
    lake, journal = lake_with(tmp_path, "former", "orders_with_customers")
    without = load_text(TEXT[: TEXT.index("joins:")], tmp_path / "lakejoin.yaml")

    check_progress(without, lake, journal)
    begun_anew = replace(
        BUILT, batch=2, joins=("orders_with_customers",), bootstrap=("orders_with_customers",)
    )
    again = Journal(lake)
    again.published, again.plans = journal.published, [*journal.plans, begun_anew]
    check_progress(load_text(TEXT, tmp_path / "lakejoin.yaml"), lake, again)
    with pytest.raises(
        LakeInconsistent, match=r"joins/orders_with_customers/joined: its log says .* batch None"
    ):
        check_progress(load_text(TEXT, tmp_path / "lakejoin.yaml"), lake, journal)


WITH_VARIABLE = TEXT.replace(
    "foreign_key: [customer]", "foreign_key: ['coalesce(customer, ''${env:HOME}'')']"
)


def test_text_with_a_variable_is_a_part_of_what_a_join_was_built_with(tmp_path: Path) -> None:
    """By a plan of an earlier version Spark put a value in its place; what this version plans is its own."""
    pipeline = load_text(WITH_VARIABLE, tmp_path / "lakejoin.yaml")
    journal = Journal(Lake(str(tmp_path / "lake")))
    shapes = shapes_of(pipeline)
    earlier = {name: shape for name, shape in shapes.items() if not name.endswith("expression_specification")}
    journal.plans.append(replace(BUILT, joins=("orders_with_customers",), shapes=shapes))
    check_shapes(pipeline, journal)
    journal.plans[-1] = replace(journal.plans[-1], shapes=earlier)

    with pytest.raises(ConfigurationChanged) as refused:
        check_shapes(pipeline, journal)
    assert str(refused.value) == (
        f"{pipeline.path}:15: joins.orders_with_customers.foreign_key: this version of Lakejoin reads `${{…}}` as "
        f"text, and the join in {pipeline.lake} was, until batch 1, built with what Spark put in its place; compute it "
        f"anew: `lakejoin run {pipeline.path} --rebuild orders_with_customers`, or go on with version 0.1 of Lakejoin, "
        "which planned that batch"
    )
    check_shapes(pipeline, journal, ["orders_with_customers"])
    check_shape(pipeline, journal.plans[-1], "orders_with_customers")
    journal.plans[-1] = replace(
        journal.plans[-1], shapes=shapes_of(load_text(TEXT, tmp_path / "lakejoin.yaml"))
    )
    with pytest.raises(ConfigurationChanged, match=r"^[^\n]*foreign_key: changed since batch 1[^\n]*$"):
        check_shapes(pipeline, journal)


def test_lake_without_variables_is_read_on(tmp_path: Path) -> None:
    """Its expressions mean what they always meant, so nothing is said of them and nothing is missed."""
    pipeline = load_text(
        TEXT.replace("foreign_key: [customer]", "foreign_key: ['upper(customer)']"),
        tmp_path / "lakejoin.yaml",
    )

    assert not any("expression_specification" in name for name in shapes_of(pipeline) | readings_of(pipeline))


CONDITION = """streams:
  clicks:
    source: {format: jsonl, path: "clicks/{date}.jsonl"}
    columns: {id: bigint, page: string, at: timestamp}
    key: [id]
    event_time: at
    where: "page = '${env:HOME}'"
joins:
"""


def test_condition_with_a_variable_does_not_change_within_a_batch(tmp_path: Path) -> None:
    """A batch that an earlier version began, and committed a part of, is finished by it."""
    pipeline = load_text(TEXT.replace("joins:\n", CONDITION), tmp_path / "lakejoin.yaml")
    readings = readings_of(pipeline)
    check_readings(pipeline, replace(BUILT, shapes=readings), ["records/clicks"])
    del readings["streams/clicks/expression_specification"]

    with pytest.raises(
        ConfigurationChanged, match=r"streams\.clicks\.where: .* batch 1, .* with version 0\.1"
    ):
        check_readings(pipeline, replace(BUILT, shapes=readings), ["records/clicks"])
    check_readings(pipeline, replace(BUILT, shapes=readings), [])


def test_pinned_settings_belong_to_the_specification_of_expressions() -> None:
    """Who pins another value says, by its number and `expression_version`, which lakes have to do with it."""
    pinned = hashlib.sha256(json.dumps(sorted(PINNED.items())).encode()).hexdigest()[:16]

    assert (SPECIFICATION, pinned) == (2, "5d49bd4f1b8c469f")
