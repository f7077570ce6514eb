"""Columns that are added to a table or widened reach the lake without changing a row of it."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from faults.crashing import Crash, commits
from faults.shop import make_pipeline, write_lines
from lakejoin.orchestration.cli.show_rows import Asked, open_shown
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.config.schema.column_types import parse_type
from lakejoin.orchestration.errors import WrongUsage
from lakejoin.orchestration.lake_state.declared_schemas import misfits
from lakejoin.orchestration.lake_state.published_snapshot import published_snapshot
from lakejoin.orchestration.maintenance.maintain import maintain
from lakejoin.orchestration.runs.migrate import LeftOut, Migrated, migrate
from lakejoin.orchestration.runs.run import run_batches
from lakejoin.orchestration.show.key_ranges import Range
from lakejoin.storage.errors import ConfigurationChanged
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake, changes_of, joined_of
from lakejoin.storage.stores.pipeline.tables import joined_store

pytestmark = pytest.mark.spark

TEXT = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {format: jsonl, path: "orders/{date}.jsonl"}
    columns: {id: bigint, customer: string, note: string}
    key: [id]
  customers:
    source: {format: jsonl, path: "customers/{date}.jsonl"}
    columns: {customer: string, city: string}
    key: [customer]
joins:
  left: {left: orders, right: customers, foreign_key: [customer], how: left, changelog: true}
  over: {left: left, right: customers, foreign_key: [right_city], how: left, prefix: over_}
"""
GROWN = TEXT.replace(
    "{customer: string, city: string}", "{country: string, customer: string, city: string, since: date}"
)


MORE = "  more: {left: orders, right: customers, foreign_key: [customer], how: left}\n"


def write(folder: Path, table: str, day: str, *records: dict[str, object]) -> None:
    """Write the records of a day."""
    write_lines(folder / table / f"{day}.jsonl", records)


def rows(pipeline: Pipeline, join: str, spark: SparkSession) -> list[tuple[object, ...]]:
    """The joined rows: key, city and country, and the batch that wrote them."""
    found = spark.read.format("delta").load(Lake(pipeline.lake).path(joined_of(join)))
    names = [name for name in ("id", "right_city", "right_country", "_lj_batch") if name in found.columns]
    return sorted(map(tuple, found.select(*names).collect()))


@pytest.fixture
def shop(tmp_path: Path, spark: SparkSession) -> Path:
    """A lake of one day."""
    folder = tmp_path / "shop"
    write(
        folder,
        "orders",
        "2024-01-01",
        {"op": "c", "id": 1, "customer": "ada"},
        {"op": "c", "id": 2, "customer": "bob"},
    )
    write(
        folder, "customers", "2024-01-01", {"op": "c", "customer": "ada", "city": "Paris"},
        {"op": "c", "customer": "bob", "city": "Rome"},
    )  # fmt: skip
    list(run_batches(make_pipeline(folder, TEXT), spark))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("folded", [False, True])
def test_added_columns_change_no_row_until_its_next_change(
    shop: Path, folded: bool, spark: SparkSession
) -> None:
    """The same row again is the same row still, and a record that has a value of the new column brings it.

    A join that is declared beside that begins afterwards, with all rows.
    """
    if folded:
        list(maintain(make_pipeline(shop, TEXT), lambda: spark, everything=True))
    pipeline = make_pipeline(shop, GROWN + MORE)
    with pytest.raises(
        ConfigurationChanged, match=r"customers\.columns: .*`lakejoin migrate .*lakejoin\.yaml`"
    ):
        list(run_batches(pipeline, spark))

    done = list(migrate(pipeline, lambda: spark))

    added = {one.table: one.added for one in done if isinstance(one, Migrated)}
    assert added[joined_of("left")] == ["right_country", "right_since"]
    assert added[joined_of("over")] == ["right_country", "right_since", "over_country", "over_since"]
    assert rows(pipeline, "left", spark) == [(1, "Paris", None, 1), (2, "Rome", None, 1)]
    assert list(migrate(pipeline, lambda: spark)) == []

    again = {"op": "u", "customer": "ada", "city": "Paris"}
    write(
        shop,
        "customers",
        "2024-01-02",
        again,
        {"op": "u", "customer": "bob", "city": "Rome", "country": "Italy"},
    )
    begun, batch = run_batches(pipeline, spark)
    assert begun.joins["more"]["emissions"] == 2
    assert batch.joins["left"]["stale"] == 0
    assert rows(pipeline, "left", spark) == [(1, "Paris", None, 4), (2, "Rome", "Italy", 4)]
    list(maintain(pipeline, lambda: spark, everything=True))
    write(shop, "orders", "2024-01-03", {"op": "c", "id": 3, "customer": "bob"})
    list(run_batches(pipeline, spark))
    assert rows(pipeline, "over", spark)[-1][:3] == (3, "Rome", "Italy")


NARROW = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {format: jsonl, path: "orders/{date}.jsonl"}
    columns: {id: int, customer: int, price: "decimal(6,2)", weight: float, n: int}
    key: [id]
    sequence: [n]
  customers:
    source: {format: jsonl, path: "customers/{date}.jsonl"}
    columns: {customer: int, city: string}
    key: [customer]
joins:
  left: {left: orders, right: customers, foreign_key: [customer], how: left, changelog: true}
  over: {left: left, right: customers, foreign_key: [customer], how: inner, prefix: over_}
"""
WIDE = NARROW.replace(" int", " bigint").replace("decimal(6,2)", "decimal(12,2)").replace("float", "double")


@pytest.mark.slow
@pytest.mark.parametrize("folded", [False, True])
def test_wider_types_change_no_row_and_no_answer(tmp_path: Path, folded: bool, spark: SparkSession) -> None:
    """Of keys, foreign keys, sequences and values: what is there joins with what is beyond the narrow types."""
    first = {"op": "c", "id": 1, "customer": 7, "price": "1.50", "weight": 0.5, "n": 1}
    write(tmp_path, "orders", "2024-01-01", first)
    write(tmp_path, "customers", "2024-01-01", {"op": "c", "customer": 7, "city": "Rome"})
    list(run_batches(make_pipeline(tmp_path, NARROW), spark))
    if folded:
        list(maintain(make_pipeline(tmp_path, NARROW), lambda: spark, everything=True))
    pipeline = make_pipeline(tmp_path, WIDE)

    done = list(migrate(pipeline, lambda: spark))

    widened = {one.table: one.widened for one in done if isinstance(one, Migrated)}
    assert "foreign_key.customer bigint" in widened["joins/left/subscription_log"]
    assert "_lj_sequence.n bigint" in widened["tables/orders/changes"]
    assert {"price decimal(12,2)", "weight double", "id bigint"} <= {*widened[joined_of("over")]}
    assert list(migrate(pipeline, lambda: spark)) == []

    big = 5_000_000_000
    write(
        tmp_path, "orders", "2024-01-02", first,
        {"op": "c", "id": big, "customer": 7, "price": "1234567.25", "weight": 1e300, "n": big},
    )  # fmt: skip
    write(tmp_path, "customers", "2024-01-02", {"op": "u", "customer": 7, "city": "Oslo"})
    (batch,) = run_batches(pipeline, spark)

    assert (batch.tables["orders"]["duplicate"], batch.tables["orders"]["applied"]) == (1, 1)
    assert batch.joins["left"]["stale"] == batch.joins["over"]["stale"] == 0
    found = spark.read.format("delta").load(Lake(pipeline.lake).path(joined_of("over")))
    assert sorted(
        (row["id"], str(row["price"]), row["weight"], row["over_city"]) for row in found.collect()
    ) == [
        (1, "1.50", 0.5, "Oslo"),
        (big, "1234567.25", 1e300, "Oslo"),
    ]
    lake = Lake(pipeline.lake)
    store = joined_store(lake, published_snapshot(Journal(lake)), pipeline.join_spec("over"))
    assert [row.key for row in store.all()] == [1, big]
    list(maintain(pipeline, lambda: spark, everything=True))
    assert [row.key for row in store.all()] == [1, big]


SEEN = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {format: jsonl, path: "orders/{date}.jsonl"}
    columns: {id: bigint, code: int, price: float}
    key: [id]
  prices:
    source: {format: jsonl, path: "prices/{date}.jsonl"}
    columns: {code: string, city: string}
    key: [code]
joins:
  hashed: {left: orders, right: prices, foreign_key: ["cast(xxhash64(code) as string)"], how: left}
  texts: {left: orders, right: prices, foreign_key: ["cast(code as string)"], how: left}
"""
BY_INT, BY_BIGINT = "2786828215451145335", "-2864211556195259663"
"""Spark's xxhash64 of the int 7, and of the bigint."""


@pytest.mark.slow
def test_foreign_key_that_sees_a_wider_type_is_computed_anew(tmp_path: Path, spark: SparkSession) -> None:
    """`xxhash64(code)` of an int and of the same bigint differ, and `cast(code as string)` does not."""
    write(tmp_path, "orders", "2024-01-01", {"op": "c", "id": 1, "code": 7, "price": 0.5})
    codes = (BY_INT, "of int"), (BY_BIGINT, "of bigint"), ("7", "of text")
    write(
        tmp_path, "prices", "2024-01-01", *[{"op": "c", "code": code, "city": city} for code, city in codes]
    )
    list(run_batches(make_pipeline(tmp_path, SEEN), spark))
    pipeline = make_pipeline(tmp_path, SEEN.replace("code: int", "code: bigint"))
    with commits(1), pytest.raises(Crash):
        list(migrate(pipeline, lambda: spark))

    *_, left = migrate(pipeline, lambda: spark)

    assert isinstance(left, LeftOut)
    assert (left.joins, left.seen) == (["hashed"], ("hashed",))
    assert "by the wider types hashed may have other values" in str(left)
    assert f"lakejoin run {pipeline.path} --rebuild hashed`" in str(left)
    write(tmp_path, "orders", "2024-01-02", {"op": "u", "id": 1, "code": 7, "price": 1.5})
    write(tmp_path, "prices", "2024-01-02", {"op": "u", "code": BY_BIGINT, "city": "changed"})
    list(run_batches(pipeline, spark, rebuild=["hashed"]))
    assert [row[:2] for row in rows(pipeline, "hashed", spark)] == [(1, "changed")]
    assert [row[:2] for row in rows(pipeline, "texts", spark)] == [(1, "of text")]


@pytest.mark.parametrize("changed", ["where", "foreign_key"])
def test_stream_whose_expression_sees_a_wider_type_is_refused(
    changed: str, tmp_path: Path, spark: SparkSession
) -> None:
    """What a stream has joined is not joined again."""
    stream = """\
streams:
  orders:
    source: {format: jsonl, path: "orders/{date}.jsonl"}
    columns: {id: bigint, code: int, at: timestamp}
    key: [id]
    event_time: at
    where: WHERE
"""
    text = SEEN[: SEEN.index("  orders:")] + SEEN[SEEN.index("  prices:") : SEEN.index("joins:")] + stream
    text += "joins:\n  hashed: {stream: orders, table: prices, foreign_key: [KEY], how: left}\n"
    hashed, plain = "cast(xxhash64(code) as string)", "cast(code as string)"
    text = text.replace("WHERE", f"\"{hashed if changed == 'where' else plain} <> '{BY_BIGINT}'\"")
    text = text.replace("KEY", f'"{hashed if changed == "foreign_key" else plain}"')
    write(tmp_path, "orders", "2024-01-01", {"op": "c", "id": 1, "code": 7, "at": "2024-01-01T00:00:00Z"})
    write(tmp_path, "prices", "2024-01-01", {"op": "c", "code": BY_INT, "city": "of int"})
    list(run_batches(make_pipeline(tmp_path, text), spark))

    with pytest.raises(
        ConfigurationChanged, match="has another value for rows of the lake by the wider types"
    ) as said:
        list(migrate(make_pipeline(tmp_path, text.replace("code: int", "code: bigint")), lambda: spark))
    assert ("streams.orders.where" if changed == "where" else "joins.hashed.foreign_key") in str(said.value)
    assert list(run_batches(make_pipeline(tmp_path, text), spark)) == []


@pytest.mark.slow
def test_migration_that_was_cut_off_is_repeated(shop: Path, spark: SparkSession) -> None:
    """Whatever got its columns already keeps them, and the lake refuses the old and the new file in between."""
    pipeline = make_pipeline(shop, GROWN)
    with commits(2), pytest.raises(Crash):
        list(migrate(pipeline, lambda: spark))
    with pytest.raises(ConfigurationChanged):
        list(run_batches(pipeline, spark))
    everything = Range()
    with pytest.raises(ConfigurationChanged):
        open_shown(pipeline, Asked("left", everything, None, None, None, everything=False, internal=False))
    assert list(run_batches(make_pipeline(shop, TEXT), spark)) == []
    pipeline = make_pipeline(shop, GROWN)
    assert any(isinstance(one, Migrated) for one in list(migrate(pipeline, lambda: spark)))
    assert Journal(Lake(pipeline.lake)).last.kind == "migrate"
    assert list(run_batches(pipeline, spark)) == []


def schemas(table: Path) -> list[str]:
    """The columns that a table had, one after the other."""
    commits = sorted((table / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for commit in commits for line in commit.read_text().splitlines()]
    found = [action["metaData"]["schemaString"] for action in actions if "metaData" in action]
    return list(dict.fromkeys(found))


@pytest.mark.slow
def test_table_gets_all_its_columns_in_one_commit(tmp_path: Path, spark: SparkSession) -> None:
    """New ones and wider types: wherever a migration is cut off, a table has all or none, and the next one goes on."""
    write(tmp_path, "orders", "2024-01-01", {"op": "c", "id": 1, "customer": 7, "price": "1.50", "n": 1})
    write(tmp_path, "customers", "2024-01-01", {"op": "c", "customer": 7, "city": "Rome"})
    list(run_batches(make_pipeline(tmp_path, NARROW), spark))
    text = WIDE.replace("n: bigint}", "n: bigint, note: string}").replace(
        "city: string}", "city: string, country: string}"
    )
    pipeline = make_pipeline(tmp_path, text)

    made: list[str] = []
    for _ in range(20):
        with commits(0) as counted:
            try:
                done = list(migrate(pipeline, lambda: spark))
            except Crash:
                made += counted.made
            else:
                break

    assert done == []
    tables = made[: made.index("_plan")]
    assert {joined_of("left"), joined_of("over"), changes_of("orders"), changes_of("customers")} <= {*tables}
    assert len(tables) == len({*tables})
    assert {table: len(schemas(Path(pipeline.lake, table))) for table in tables} == dict.fromkeys(tables, 2)
    assert Journal(Lake(pipeline.lake)).last.kind == "migrate"
    write(
        tmp_path,
        "orders",
        "2024-01-02",
        {"op": "c", "id": 5_000_000_000, "customer": 7, "n": 2, "note": "big"},
    )
    write(tmp_path, "customers", "2024-01-02", {"op": "u", "customer": 7, "city": "Rome", "country": "Italy"})
    list(run_batches(pipeline, spark))
    found = spark.read.format("delta").load(Lake(pipeline.lake).path(joined_of("over")))
    assert sorted((row["id"], row["note"], row["over_country"]) for row in found.collect()) == [
        (1, None, "Italy"),
        (5_000_000_000, "big", "Italy"),
    ]


@pytest.mark.slow
def test_types_that_were_undone_after_a_cut_are_refused_before_a_batch(
    tmp_path: Path, spark: SparkSession
) -> None:
    """The lake has the wider ones in part; what was only added may be undone."""
    write(tmp_path, "orders", "2024-01-01", {"op": "c", "id": 1, "customer": 7, "n": 1})
    write(tmp_path, "customers", "2024-01-01")
    list(run_batches(make_pipeline(tmp_path, NARROW), spark))
    wide = NARROW.replace("weight: float, n: int", "weight: double, n: int, note: string")
    with commits(0), pytest.raises(Crash):
        list(migrate(make_pipeline(tmp_path, wide), lambda: spark))
    write(tmp_path, "orders", "2024-01-02", {"op": "c", "id": 2, "customer": 7, "n": 1, "note": "new"})
    pipeline = make_pipeline(tmp_path, NARROW)

    with pytest.raises(
        ConfigurationChanged,
        match=r"yaml:6: tables\.orders\.columns: weight has type double in .*/tables/orders/changes, and not float: "
        r".* Declare the wider .* `lakejoin migrate ",
    ):
        list(run_batches(pipeline, spark))

    assert len(Journal(Lake(pipeline.lake)).plans) == 1
    pipeline = make_pipeline(tmp_path, wide)
    list(migrate(pipeline, lambda: spark))
    list(run_batches(pipeline, spark))
    found = spark.read.format("delta").load(Lake(pipeline.lake).path(joined_of("left")))
    assert sorted((row["id"], row["note"]) for row in found.collect()) == [(1, None), (2, "new")]


@pytest.mark.parametrize(
    ("stored", "declared", "found"),
    [
        ("a: int, b: float", "b: double, a: bigint, c: date", []),
        ("a: bigint", "a: int", ["a is int, was bigint"]),
        ("a: struct<b: int>", "a: struct<b: bigint>", ["a is struct<b:bigint>, was struct<b:int>"]),
        ("a: struct<b: int>", "a: struct<b: int, c: int>", ["a is struct<b:int,c:int>, was struct<b:int>"]),
        ("a: array<int>", "a: array<bigint>", ["a is array<bigint>, was array<int>"]),
        ("a: int, _lj_batch: bigint", "b: int", ["a is no longer declared"]),
    ],
)
def test_wider_types_are_those_of_whole_columns(stored: str, declared: str, found: list[str]) -> None:
    """The hash of a nested value is that of its text, which a wider type may write otherwise."""
    types = [parse_type(f"struct<{columns}>") for columns in (stored, declared)]
    assert misfits(*types, within=False) == found


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("{id: bigint, customer", "{id: int, customer", "id is int, was bigint"),
        (", note: string}", "}", "note is no longer declared"),
    ],
)
def test_only_new_columns_are_taken(shop: Path, old: str, new: str, found: str, spark: SparkSession) -> None:
    """The message says which column is not what it was."""
    pipeline = make_pipeline(shop, TEXT.replace(old, new))
    with pytest.raises(ConfigurationChanged, match=found):
        list(migrate(pipeline, lambda: spark))
    assert len(Journal(Lake(pipeline.lake)).plans) == 1


@pytest.mark.parametrize(
    ("was", "becomes", "rooms"),
    [("int", "string", "2 rooms"), ("bigint", "int", 2)],
)
@pytest.mark.slow
def test_columns_of_a_table_without_a_record_are_those_of_its_joins(
    tmp_path: Path, was: str, becomes: str, rooms: str | int, spark: SparkSession
) -> None:
    """No log knows that they were other ones: the join is left as it is until it is made anew.

    A beginning that is cut off is gone on with by any run.
    """
    old = TEXT.replace("city: string}", f"city: string, rooms: {was}}}")
    new = old.replace(f"rooms: {was}", f"rooms: {becomes}")
    write(tmp_path, "orders", "2024-01-01", {"op": "c", "id": 1, "customer": "ada"})
    write(tmp_path, "customers", "2024-01-01", {"op": "c", "customer": "ada", "rooms": "2 rooms"})
    list(run_batches(make_pipeline(tmp_path, old), spark))
    rebuilt = make_pipeline(tmp_path, new)

    *_, left = migrate(rebuilt, lambda: spark)

    assert left == LeftOut(["left", "over"], f"`lakejoin run {rebuilt.path} --rebuild left`")
    assert rows(rebuilt, "left", spark) == [(1, None, 1)]
    with pytest.raises(ConfigurationChanged, match=r"not kept up to date since.*--rebuild left`"):
        list(run_batches(rebuilt, spark))
    with pytest.raises(WrongUsage, match=r"left: .*not kept up to date to batch 2; .*--rebuild left`"):
        open_shown(rebuilt, Asked("left", Range(), None, None, None, everything=False, internal=False))
    list(maintain(rebuilt, lambda: spark, everything=True))
    with commits("joins/left/joined", "before"), pytest.raises(Crash):
        list(run_batches(rebuilt, spark, rebuild=("left",)))
    write(tmp_path, "customers", "2024-01-02", {"op": "c", "customer": "ada", "rooms": rooms})
    list(run_batches(rebuilt, spark))
    found = spark.read.format("delta").load(Lake(rebuilt.lake).path(joined_of("left")))
    assert [row["right_rooms"] for row in found.collect()] == [rooms]


@pytest.mark.slow
def test_table_without_a_record_gets_columns_by_its_joins_alone(tmp_path: Path, spark: SparkSession) -> None:
    """New and wider ones, while there is nothing else to give them to; what is read afterwards has them."""
    write(tmp_path, "orders", "2024-01-01", {"op": "c", "id": 1, "customer": 7, "n": 1})
    write(tmp_path, "customers", "2024-01-01")
    old = NARROW.replace("city: string}", "city: string, rooms: int}")
    list(run_batches(make_pipeline(tmp_path, old), spark))
    pipeline = make_pipeline(tmp_path, old.replace("rooms: int}", "rooms: bigint, country: string}"))

    done = {one.table: one for one in migrate(pipeline, lambda: spark) if isinstance(one, Migrated)}

    assert not Lake(pipeline.lake).has(changes_of("customers"))
    left = done[joined_of("left")]
    assert (left.added, left.widened) == (["right_country"], ["right_rooms bigint"])
    path = Lake(pipeline.lake).path(joined_of("left"))
    assert [row["right_rooms"] for row in spark.read.format("delta").load(path).collect()] == [None]
    write(
        tmp_path,
        "customers",
        "2024-01-02",
        {"op": "c", "customer": 7, "rooms": 5_000_000_000, "country": "Italy"},
    )
    list(run_batches(pipeline, spark))
    (row,) = spark.read.format("delta").load(path).collect()
    assert (row["right_rooms"], row["right_country"]) == (5_000_000_000, "Italy")
