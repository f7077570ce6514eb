"""Names and values chosen to break what handles them: files, columns and keys come out as they went in."""

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from faults.processes import lakejoin
from faults.shop import make_pipeline, make_shop, write_lines
from lakejoin.orchestration.checks.check_lake import check_lake
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.runs.run import run_batches
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import QUARANTINE, Lake, changes_of, joined_of

pytestmark = [pytest.mark.spark, pytest.mark.slow]

KEYS = [
    "", " ", "\0", "\0\0", "a\0b", "\t", "\n", "\r\n", "null", "NULL", r"\N", "0", "00", "1", "1.0", "é", "e\u0301",
    "\u00c5", "\u212b", "\u200d", "\u202ea", "\u0634", "😀", "\ud7ff", "\uffff", "\U0010ffff", "'", "`", "``",
    '"', "\\", "\\'", "%", "_", "--", "/*", "*", "' OR '1'='1", "'; DROP TABLE rows; --", "${HOME}", "{{key}}",
    "{date}", "%2e%2e", "../x", "a,b", '["a"]', '{"a":1}', "A", "a", "ß", "SS", "x" * 10_000,
    "<script>alert(1)</script>",
]  # fmt: skip
"""No two are equal; some are for people, for SQL without regard to case, or after Unicode's normalisation."""
BINARY = [
    b"",
    b"\0",
    b"\0\0",
    b"\xff",
    b"\xff\xff",
    b"'",
    b"a",
    b"\xc3\x28",
    b"\xed\xa0\x80",
    bytes(range(256)),
]
FILES = [
    "it's.jsonl", "a b.jsonl", "%2e%2e%2fx.jsonl", "x;DROP TABLE.jsonl", "$(touch y).jsonl", "{x}[1].jsonl",
    "#?&=.jsonl", "日本😀.jsonl", "back\\slash.jsonl", '"quoted".jsonl', "`tick`.jsonl",
]  # fmt: skip
CITY, NAME = "it's`a.b", "Städte\"'--"
CONFIGURATION = {
    "name": "hostile",
    "lake": "./lake",
    "tables": {
        "orders": {
            "source": {"format": "jsonl", "path": "orders/*"},
            "columns": {
                "n": "bigint",
                "a.b": "string",
                "a`b": "binary",
                "a": "struct<b:string>",
                "d": "double",
                "s": "int",
            },
            "key": ["n"],
            "sequence": ["s"],
        },
        "texts": {
            "source": {"format": "jsonl", "path": "texts/*"},
            "columns": {"key'--": "string", CITY: "string", NAME: "map<string,string>", "s": "int"},
            "key": ["key'--"],
            "sequence": ["s"],
        },
        "bytes": {
            "source": {"format": "jsonl", "path": "bytes/*"},
            "columns": {"b": "binary", "city": "string"},
            "key": ["b"],
        },
    },
    "joins": {
        "by_text": {
            "left": "orders",
            "right": "texts",
            "foreign_key": ["a.b"],
            "how": "inner",
            "prefix": "t'",
        },
        "by_bytes": {
            "left": "orders",
            "right": "bytes",
            "foreign_key": ["a`b"],
            "how": "inner",
            "changelog": True,
        },
    },
}


@dataclass(frozen=True)
class Hostile:
    """A pipeline after two batches."""

    pipeline: Pipeline
    journal: Journal


@pytest.fixture(scope="module")
def hostile(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Hostile:
    """Return a lake with every key on both sides, of which the second batch changes or deletes each."""
    folder = tmp_path_factory.mktemp("hostile")
    for part, name in enumerate(FILES):
        numbers = [n for n in range(len(KEYS)) if n % len(FILES) == part]
        binary = [base64.b64encode(BINARY[n]).decode() if n < len(BINARY) else None for n in numbers]
        orders = [
            {"op": "c", "n": n, "a.b": KEYS[n], "a`b": b, "a": {"b": "x"}, "d": "NaN", "s": 1}
            for n, b in zip(numbers, binary, strict=True)
        ]
        write_lines(folder / "orders" / name, orders)
    write_lines(folder / "texts" / "1.jsonl", [text_row("c", n, f"city {n}", 1) for n in range(len(KEYS))])
    write_lines(folder / "bytes" / "1.jsonl", [bytes_row("c", n, f"city {n}") for n in range(len(BINARY))])
    pipeline = make_pipeline(folder, yaml.safe_dump(CONFIGURATION, allow_unicode=True))
    assert len(list(run_batches(pipeline, spark))) == 1
    write_lines(
        folder / "texts" / "2.jsonl", [text_row("ud"[n % 2], n, f"town {n}", 2) for n in range(len(KEYS))]
    )
    write_lines(
        folder / "bytes" / "2.jsonl", [bytes_row("ud"[n % 2], n, f"town {n}") for n in range(len(BINARY))]
    )
    assert len(list(run_batches(pipeline, spark))) == 1
    return Hostile(pipeline, Journal(Lake(pipeline.lake)))


def text_row(op: str, number: int, city: str, sequence: int) -> dict[str, Any]:
    """A change of the table whose key is text."""
    return {"op": op, "key'--": KEYS[number], CITY: city, NAME: {"z": "1", "a'": None}, "s": sequence}


def bytes_row(op: str, number: int, city: str) -> dict[str, Any]:
    """A change of the table whose key is binary."""
    return {"op": op, "b": base64.b64encode(BINARY[number]).decode(), "city": city}


def joined(hostile: Hostile, spark: SparkSession, join: str, version: int) -> list[Any]:
    """Rows of a joined table after one of its commits, the first of which only makes it."""
    path = Lake(hostile.pipeline.lake).path(joined_of(join))
    return spark.read.format("delta").option("versionAsOf", version).load(path).orderBy("n").collect()


@pytest.mark.bad_input(18)
@pytest.mark.bad_input(20)
@pytest.mark.bad_input(31)
def test_every_text_is_a_key_of_its_own(hostile: Hostile, spark: SparkSession) -> None:
    """Each order meets the one row with exactly its text, follows its change and loses it with its delete."""
    first, second = (hostile.journal.published[batch].versions[joined_of("by_text")] for batch in (0, 1))

    before = [(row["n"], row["a.b"], row[f"t'{CITY}"]) for row in joined(hostile, spark, "by_text", first)]
    after = [(row["n"], row["a.b"], row[f"t'{CITY}"]) for row in joined(hostile, spark, "by_text", second)]

    assert before == [(n, KEYS[n], f"city {n}") for n in range(len(KEYS))]
    assert after == [(n, KEYS[n], f"town {n}") for n in range(0, len(KEYS), 2)]


@pytest.mark.bad_input(19)
@pytest.mark.bad_input(20)
def test_every_sequence_of_bytes_is_a_key_of_its_own(hostile: Hostile, spark: SparkSession) -> None:
    """Binary keys need not be text, and are compared as bytes."""
    first, second = (hostile.journal.published[batch].versions[joined_of("by_bytes")] for batch in (0, 1))

    before = [(row["n"], row["a`b"], row["right_city"]) for row in joined(hostile, spark, "by_bytes", first)]
    after = [(row["n"], row["a`b"], row["right_city"]) for row in joined(hostile, spark, "by_bytes", second)]

    assert before == [(n, BINARY[n], f"city {n}") for n in range(len(BINARY))]
    assert after == [(n, BINARY[n], f"town {n}") for n in range(0, len(BINARY), 2)]


@pytest.mark.bad_input(30)
@pytest.mark.bad_input(31)
def test_every_file_is_read_under_its_own_name(hostile: Hostile, spark: SparkSession) -> None:
    """No name is taken for a pattern, an encoded path or a command."""
    changes = spark.read.format("delta").load(Lake(hostile.pipeline.lake).path(changes_of("orders")))

    found = (
        changes.select("n", F.col("_lj_position.file").alias("file"), "_lj_position.line")
        .orderBy("n")
        .collect()
    )

    assert [(row["n"], row["file"], row["line"]) for row in found] == [
        (n, FILES[n % len(FILES)], n // len(FILES) + 1) for n in range(len(KEYS))
    ]
    assert not Path("y").exists()


@pytest.mark.bad_input(22)
def test_table_without_input_commits_nothing(hostile: Hostile) -> None:
    """The second batch changed the right sides alone: the log of the left one stays at its version."""
    first, second = hostile.journal.published

    assert second.versions[changes_of("orders")] == first.versions[changes_of("orders")]
    assert second.commits["changes/orders"] == 1
    assert second.commits["changes/texts"] == 2
    assert QUARANTINE not in second.versions


@pytest.mark.bad_input(26)
@pytest.mark.bad_input(28)
def test_value_that_is_written_otherwise_is_the_same(hostile: Hostile, spark: SparkSession) -> None:
    """NaN equals itself, -0.0 zero and a map the same in another order: delivered again, they are duplicates."""
    folder = hostile.pipeline.path.parent
    orders = [
        {"op": "u", "n": 0, "a.b": KEYS[0], "a`b": "", "a": {"b": "x"}, "d": "NaN", "s": 1},
        {"op": "c", "n": 1000, "d": 0.0, "s": 1},
        {"op": "c", "n": 1000, "d": -0.0, "s": 1},
    ]
    text = text_row("u", 0, "town 0", 2) | {NAME: {"a'": None, "z": "1"}}
    write_lines(folder / "orders" / "z.jsonl", orders)
    write_lines(folder / "texts" / "3.jsonl", [text])

    (published,) = run_batches(hostile.pipeline, spark)

    counts = {name: (table["applied"], table["duplicate"]) for name, table in published.tables.items()}
    assert counts == {"orders": (1, 2), "texts": (0, 1), "bytes": (0, 0)}


@pytest.mark.bad_input(31)
@pytest.mark.slow
def test_rules_over_hostile_names_hold(hostile: Hostile, spark: SparkSession) -> None:
    """Every rule is SQL over these columns, and none stumbles over a name or a value."""
    checked = check_lake(hostile.pipeline, spark, batches=None)

    assert [result for results in checked.results.values() for result in results if not result.success] == []
    assert set(checked.results) == {"orders", "texts", "bytes", "by_text", "by_bytes"}


def test_lake_in_a_folder_with_other_letters_is_worked_off_in_the_locale_of_c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container or a timer that sets none, where Java would take names of files for ASCII."""
    monkeypatch.setenv("LC_ALL", "C")
    pipeline = make_shop(tmp_path / "Überflug 東京", ["2024-01-01"])

    code, said = lakejoin(pipeline.path.parent, "run").end()

    assert code == 0, said
    last = Journal(Lake(pipeline.lake)).last
    assert last is not None
    assert (last.tables["orders"]["applied"], last.joins["left"]["emissions"]) == (5, 5)
