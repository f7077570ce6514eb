"""A small pipeline that makes every kind of commit in one batch, and what its lake holds."""

import json
import shutil
from collections.abc import Collection, Iterable, Mapping
from functools import reduce
from pathlib import Path
from typing import Any

import yaml
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from lakejoin.orchestration.config import Pipeline, load
from lakejoin.orchestration.lake_state.published_snapshot import published_snapshot
from lakejoin.orchestration.runs.run import run_batches
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import LEASE, PLAN, PUBLISHED, Lake, joined_of
from lakejoin.storage.state.pinned_state import State
from lakejoin.transforms.model.schemas import VALIDITY, is_internal, named

CONFIGURATION = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {format: jsonl, path: "orders/{date}.jsonl"}
    columns: {id: bigint, customer: string, amount: int, at: timestamp}
    key: [id]
    event_time: at
    tombstone_retention: 10 days
  customers:
    source: {format: jsonl, path: "customers/{date}.jsonl"}
    columns: {customer: string, city: string, at: timestamp}
    key: [customer]
    event_time: at
joins:
  inner: {left: orders, right: customers, foreign_key: [customer], how: inner, changelog: true}
  left: {left: orders, right: customers, foreign_key: [customer], how: left}
"""
ORDERS = {
    "2024-01-01": [
        ("c", 1, "ada", 10), ("c", 2, "bob", 20), ("c", 3, None, 30), ("c", 4, "ada", 40), ("c", 5, "eve", 50),
    ],
    # a foreign key moves, one comes, one goes; a delete, a re-insert, a new row; two changes of one key
    "2024-01-02": [
        ("u", 1, "bob", 10), ("u", 3, "ada", 30), ("u", 2, None, 20), ("d", 4, None, None), ("c", 6, "eve", 60),
        ("u", 6, "cyd", 61), ("u", "six", "bob", 1), ("d", 5, None, None), ("c", 5, "ada", 55),
    ],
    "2024-01-03": [("u", 1, "ada", 11), ("c", 4, "bob", 44), ("d", 6, None, None)],
}  # fmt: skip
CUSTOMERS = {
    "2024-01-01": [("c", "ada", "Paris"), ("c", "bob", "Rome")],
    "2024-01-02": [
        ("u", "ada", "Lyon"),
        ("x", "bob", "?"),
        ("d", "bob", None),
        ("c", "eve", "Bonn"),
        ("c", "cyd", "Cork"),
    ],
    "2024-01-03": [("c", "bob", "Oslo"), ("u", "cyd", "Kiel")],
}


def make_shop(folder: Path, days: Iterable[str] = tuple(ORDERS)) -> Pipeline:
    """Write the pipeline's configuration, and its sources of some days."""
    for day in days:
        _write(folder / "orders" / f"{day}.jsonl", day, ("op", "id", "customer", "amount"), ORDERS[day])
        _write(folder / "customers" / f"{day}.jsonl", day, ("op", "customer", "city"), CUSTOMERS[day])
    return make_pipeline(folder, CONFIGURATION)


def make_pipeline(folder: Path, text: str) -> Pipeline:
    """Write a pipeline's configuration, and its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "lakejoin.yaml").write_text(text, "utf-8")
    return load(folder / "lakejoin.yaml")


def make_chosen(folder: Path, text: str, names: Collection[str] = ()) -> Pipeline:
    """The same of a pipeline with these of its joins and groups, by default all."""
    whole = yaml.safe_load(text)
    for section in {"joins", "groups"} & whole.keys():
        whole[section] = {
            name: whole[section][name] for name in whole[section] if name in (names or whole[section])
        }
    return make_pipeline(folder, yaml.safe_dump(whole, sort_keys=False))


def _write(path: Path, day: str, names: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> None:
    records = [{**dict(zip(names, row, strict=True)), "at": f"{day}T12:00:00Z"} for row in rows]
    write_lines(path, records)


def write_lines(path: Path, records: Iterable[object]) -> None:
    """Write a file of JSON lines, and its folder; a text is a line as it stands."""
    path.parent.mkdir(exist_ok=True, parents=True)
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    path.write_text("".join(f"{line}\n" for line in lines))


def run(pipeline: Pipeline, spark: SparkSession, **options: object) -> int:
    """Work off what is pending; returns how many batches were finished."""
    return len(list(run_batches(pipeline, spark, **options)))


def copy_of(pipeline: Pipeline, folder: Path) -> Pipeline:
    """Copy a pipeline with its lake and its sources to another folder."""
    shutil.copytree(pipeline.path.parent, folder)
    return load(folder / "lakejoin.yaml")


def texts(frame: DataFrame) -> list[str]:
    """Rows as JSON, sorted."""
    return sorted(row["text"] for row in frame.select(as_text().alias("text")).collect())


def as_text() -> Column:
    """A row as JSON, nulls included."""
    return F.to_json(F.struct("*"), {"ignoreNullFields": "false"})


def _named(spark: SparkSession, lake: Lake, name: str) -> DataFrame:
    frame = spark.read.format("delta").load(lake.path(name))
    if name.endswith("/history"):
        frame = frame.drop(*VALIDITY)  # of the clock, which no two runs share
    return frame.select(F.lit(name).alias("name"), as_text().alias("text"))


Content = dict[str, list[str]]


def arrive(folder: Path, day: int, tables: Iterable[str], records: Mapping[str, Iterable[object]]) -> None:
    """Write what tables have on a day of January 2024, each a file; one without records gets an empty one."""
    for table in tables:
        write_lines(folder / table / f"2024-01-{day:02}.jsonl", records.get(table, []))


def joins(pipeline: Pipeline, spark: SparkSession) -> Content:
    """The rows of every join of tables as the last finished batch left them, without internal columns."""
    state = State(spark, Lake(pipeline.lake), published_snapshot(Journal(Lake(pipeline.lake))))
    found = {}
    for name in pipeline.joins_of_tables:
        rows = state.joined(pipeline.join_spec(name))
        found[name] = texts(rows.select(*[named(c) for c in rows.columns if not is_internal(c)]))
    return found


def result(pipeline: Pipeline, spark: SparkSession, join: str) -> list[dict[str, Any]]:
    """The rows of a join, without internal columns; none where it has no table."""
    lake = Lake(pipeline.lake)
    if lake.snapshot(joined_of(join)) is None:
        return []
    rows = spark.read.format("delta").load(lake.path(joined_of(join)))
    return [
        row.asDict() for row in rows.select(*[named(c) for c in rows.columns if not is_internal(c)]).collect()
    ]


def content(pipeline: Pipeline, spark: SparkSession) -> Content:
    """Every row of every table of a lake, as texts; of `_published` what does not depend on time and versions."""
    lake = Lake(pipeline.lake)
    root = Path(pipeline.lake)
    names = sorted(str(log.parent.relative_to(root)) for log in root.rglob("_delta_log"))
    tables: Content = {name: [] for name in names if name not in {LEASE, PLAN, PUBLISHED}}
    # all in one query, for each would cost as much
    frames = [_named(spark, lake, name) for name in tables]
    for row in reduce(DataFrame.unionAll, frames).orderBy("name", "text").collect():
        tables[row["name"]].append(row["text"])
    tables[PUBLISHED] = [
        str((p.batch, p.kind, p.dates, sorted(p.commits.items()), p.tables, p.joins, p.rows))
        for p in Journal(lake).published
    ]
    return tables
