"""Whatever changed in a configuration, the commands that the messages name lead out: to the lake it would make."""

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from faults.shop import Content, copy_of, joins, make_pipeline, run, write_lines
from lakejoin.orchestration.checks.check_lake import check_lake
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.runs.migrate import LeftOut, migrate
from lakejoin.storage.errors import ConfigurationChanged
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake, joined_of
from lakejoin.transforms.model import hashing
from lakejoin.transforms.model.schemas import LEFT_HASH

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TEXT = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {format: jsonl, path: "orders/{date}.jsonl"}
    columns: {id: int, customer: string, amount: int}
    key: [id]
  customers:
    source: {format: jsonl, path: "customers/{date}.jsonl"}
    columns: {customer: string, city: string}
    key: [customer]
joins:
  left: {left: orders, right: customers, foreign_key: [customer], how: left}
  over: {left: left, right: customers, foreign_key: [right_city], how: left, prefix: over_}
  pairs: {left: orders, right: customers, foreign_key: [customer], how: inner}
"""
Edit = tuple[str, str]
ADDED: Edit = ("city: string}", "city: string, country: string}")
WIDENED: Edit = ("id: int", "id: bigint")
REMOVED: Edit = (", amount: int", "")
KEY: Edit = ("key: [id]", "key: [id, customer]")
HOW: Edit = ("[customer], how: left", "[customer], how: inner")
FOREIGN_KEY: Edit = ("left: {left: orders, right: customers, foreign_key: [customer]", (
    "left: {left: orders, right: customers, foreign_key: [upper(customer)]"))  # fmt: skip
RESOLUTION: Edit = ("how: inner}", "how: inner, resolution: highwater}")
RENAMED: Edit = ("left: {left: orders", "main: {left: orders")
OF_RENAMED: Edit = ("over: {left: left", "over: {left: main")
GONE: Edit = (TEXT[TEXT.index("  pairs:") :], "")
DAYS: dict[str, dict[str, list[dict[str, object]]]] = {
    "2024-01-01": {
        "orders": [
            {"op": "c", "id": 1, "customer": "ada", "amount": 10},
            {"op": "c", "id": 2, "customer": "bob", "amount": 20},
            {"op": "c", "id": 3, "customer": "eve", "amount": 30},
        ],
        "customers": [
            {"op": "c", "customer": "ada", "city": "bob"},
            {"op": "c", "customer": "bob", "city": "Rome"},
            {"op": "c", "customer": "BOB", "city": "Oslo"},
        ],
    },
    "2024-01-02": {
        "orders": [
            {"op": "c", "id": 5_000_000_000, "customer": "ada", "amount": 50},
            {"op": "u", "id": 2, "customer": "ada", "amount": 20},
        ],
        "customers": [
            {"op": "u", "customer": "ada", "city": "BOB", "country": "France"},
            {"op": "c", "customer": "EVE", "city": "Bonn", "country": "Germany"},
        ],
    },
}


def declare(folder: Path, text: str, *days: str) -> Pipeline:
    """Write the pipeline, with the input of some days."""
    for day in days:
        for table, records in DAYS[day].items():
            write_lines(folder / table / f"{day}.jsonl", records)
    return make_pipeline(folder, text)


def edited(*edits: Edit) -> str:
    """The text with these changes."""
    text = TEXT
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return text


def follow(pipeline: Pipeline, spark: SparkSession) -> list[str]:
    """Run, and do what the refusals name, the last thing first; returns the commands that were done.

    They end with the refusal if it names no command.
    """
    command, done, refused = "run", list[str](), set[str]()
    while True:
        try:
            if command == "migrate":
                list(migrate(pipeline, lambda: spark))
            else:
                run(pipeline, spark, rebuild=re.findall(r"--rebuild (\w+)", command))
        except ConfigurationChanged as refusal:
            if command in refused:
                pytest.fail(f"in a circle: {refusal}")
            refused.add(command)
            named = re.findall(rf"`lakejoin (\w+) {pipeline.path}((?: --rebuild \w+)*)`", str(refusal))
            if not named:
                return [*done, str(refusal)]
            command = "".join(named[-1])
        else:
            done.append(command)
            if command.startswith("run"):
                return done
            command, refused = "run", set()


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Pipeline:
    """A lake of one day."""
    pipeline = declare(tmp_path_factory.mktemp("changes") / "before", TEXT, "2024-01-01")
    run(pipeline, spark)
    return pipeline


def made_anew(folder: Path, text: str, spark: SparkSession) -> Content:
    """What a lake holds after two days that always was declared like that."""
    pipeline = declare(folder, text, *DAYS)
    run(pipeline, spark, batch_by="all")
    return joins(pipeline, spark)


@pytest.mark.parametrize(
    ("edits", "commands"),
    [
        pytest.param([ADDED, HOW], ["migrate", "run --rebuild left"], id="column, how"),
        pytest.param(
            [ADDED, WIDENED, FOREIGN_KEY, RESOLUTION],
            ["migrate", "run --rebuild left --rebuild pairs"],
            id="column, type, foreign key, resolution of another",
        ),
        pytest.param([RESOLUTION, HOW], ["run --rebuild left --rebuild pairs"], id="two joins"),
        pytest.param(
            [WIDENED, RENAMED, OF_RENAMED, GONE],
            ["migrate", "run --rebuild over"],
            id="type, join renamed, join gone",
        ),
    ],
)
def test_messages_lead_to_the_lake_that_the_configuration_would_make(
    before: Pipeline, edits: list[Edit], commands: list[str], tmp_path: Path, spark: SparkSession
) -> None:
    """No matter which of the commands that a message names is tried first."""
    text = edited(*edits)
    copy_of(before, tmp_path / "shop")
    pipeline = declare(tmp_path / "shop", text, *DAYS)

    assert follow(pipeline, spark) == commands

    assert joins(pipeline, spark) == made_anew(tmp_path / "anew", text, spark)


@pytest.mark.parametrize(
    ("edits", "found"),
    [
        ([REMOVED, HOW], r"amount is no longer declared.* new lake"),
        ([KEY, ADDED, HOW], r"orders\.key: .* point `lake` at a new directory$"),
    ],
)
def test_message_ends_with_a_new_lake_where_nothing_else_helps(
    before: Pipeline, edits: list[Edit], found: str, tmp_path: Path, spark: SparkSession
) -> None:
    """And nothing was changed on the way."""
    copy_of(before, tmp_path / "shop")
    pipeline = declare(tmp_path / "shop", edited(*edits), *DAYS)

    (refusal,) = follow(pipeline, spark)

    assert re.search(found, refusal)
    assert len(Journal(Lake(pipeline.lake)).plans) == 1


def test_join_that_comes_back_is_named_with_those_that_changed(
    before: Pipeline, tmp_path: Path, spark: SparkSession
) -> None:
    """Either would keep the other from beginning anew."""
    copy_of(before, tmp_path / "shop")
    run(declare(tmp_path / "shop", edited(GONE), *DAYS), spark)
    pipeline = declare(tmp_path / "shop", edited(HOW), *DAYS)

    assert follow(pipeline, spark) == ["run --rebuild left --rebuild pairs"]

    assert joins(pipeline, spark) == made_anew(tmp_path / "anew", edited(HOW), spark)


def test_changed_join_stays_as_it_was_until_it_is_computed_anew(
    before: Pipeline, tmp_path: Path, spark: SparkSession
) -> None:
    """A migration leaves it out, and says so; what is then undone has to be computed anew as well."""
    copy_of(before, tmp_path / "shop")
    pipeline = declare(tmp_path / "shop", edited(ADDED, HOW))

    *_, left = migrate(pipeline, lambda: spark)

    assert left == LeftOut(["left", "over"], f"`lakejoin run {pipeline.path} --rebuild left`")
    assert list(Journal(Lake(pipeline.lake)).last.joins) == ["pairs"]
    pipeline = declare(tmp_path / "shop", edited(ADDED), *DAYS)
    assert follow(pipeline, spark) == ["run --rebuild left"]
    assert joins(pipeline, spark) == made_anew(tmp_path / "anew", edited(ADDED), spark)


def test_internal_column_of_an_earlier_version_is_left_alone(
    before: Pipeline, tmp_path: Path, spark: SparkSession
) -> None:
    """Joined tables once held the hash of each row, which is made of the row now."""
    copy_of(before, tmp_path / "shop")
    pipeline = declare(tmp_path / "shop", TEXT, *DAYS)
    for name in pipeline.joins:
        table = f"delta.`{Lake(pipeline.lake).path(joined_of(name))}`"
        spark.sql(
            f"ALTER TABLE {table} ADD COLUMNS (_lj_hash struct<spec smallint, high bigint, low bigint>)"
        )

    assert follow(pipeline, spark) == ["run"]
    assert joins(pipeline, spark) == made_anew(tmp_path / "anew", TEXT, spark)


def test_joins_begin_anew_with_another_specification_of_hashes(
    before: Pipeline, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of tables keep the hashes they have, joined ones get others; no answer is held against another one."""
    copy_of(before, tmp_path / "shop")
    pipeline = declare(tmp_path / "shop", TEXT, *DAYS)
    expected = made_anew(tmp_path / "anew", TEXT, spark)
    hashing.value_hash.cache_clear()
    monkeypatch.setattr(hashing, "HASH_SPECIFICATION", 2)
    try:
        assert follow(pipeline, spark) == ["run --rebuild left --rebuild pairs"]
        assert joins(pipeline, spark) == expected
        for name, specifications in (("left", {1, 2}), ("pairs", {1, 2}), ("over", {2})):
            rows = spark.read.format("delta").load(Lake(pipeline.lake).path(joined_of(name)))
            found = {row["spec"] for row in rows.select(f"{LEFT_HASH}.spec").collect()}
            assert found == specifications, name
        broken = {
            name: [rule.rule for rule in found if not rule.success]
            for name, found in check_lake(pipeline, spark, batches=None).results.items()
        }
        assert not any(broken.values()), broken
    finally:
        hashing.value_hash.cache_clear()
