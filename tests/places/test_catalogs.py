"""Tables of results in catalogs that last: Spark's own metastore in a database, and a Hive Metastore server."""

import getpass
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from faults.shop import write_lines
from places.hive_metastore import hive_metastore
from places.processes import python

pytestmark = [pytest.mark.slow, pytest.mark.spark]

TEXT = """\
name: shop
lake: ./lake
engine: {resident: false}
tables:
  orders:
    source: {format: jsonl, path: "orders/{date}.jsonl"}
    columns: {id: bigint, customer: string, day: date}
    key: [id]
  customers:
    source: {format: jsonl, path: "customers/{date}.jsonl"}
    columns: {name: string, country: string}
    key: [name]
joins:
  sold:
    left: orders
    right: customers
    foreign_key: [customer]
    how: left
    history: {materialized: {table: sales.sold_history, comment: what was sold then}}
    materialized:
      table: sales.sold
      partition_by: [day]
      comment: what was sold
      comments: {right_country: of the customer}
groups:
  days: {of: orders, by: [day], select: {orders: count(*)}, materialized: {table: spark_catalog.sales.days}}
"""
READER = Path(__file__).with_name("catalog_reader.py")


def _lakejoin(*arguments: str | Path, succeeds: bool = True) -> str:
    found = python("-m", "lakejoin", *arguments, environment=dict(os.environ), succeeds=succeeds)
    return found.stdout + found.stderr


def _told(conf: Mapping[str, str], *names: str) -> dict[str, dict[str, Any]]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    found: dict[str, dict[str, Any]] = json.loads(
        python(READER, json.dumps(dict(conf)), *names, environment=environment).stdout.splitlines()[-1]
    )
    return found


def _shop(folder: Path, conf: Mapping[str, str], text: str = TEXT) -> Path:
    """A pipeline whose session has a catalog, with two days of orders; its file."""
    folder.mkdir(exist_ok=True)
    file = folder / "lakejoin.yaml"
    file.write_text(yaml.safe_dump({**yaml.safe_load(text), "spark": {"conf": dict(conf)}}, sort_keys=False))
    write_lines(folder / "customers" / "2024-01-01.jsonl", [{"op": "c", "name": "a", "country": "de"}])
    for day in (1, 2):
        rows = [{"op": "c", "id": day, "customer": "a", "day": f"2024-01-0{day}"}]
        write_lines(folder / "orders" / f"2024-01-0{day}.jsonl", rows)
    return file


def _check(folder: Path, conf: Mapping[str, str]) -> None:
    """Run the shop, look at its tables as a reader does, and see what is refused."""
    file = _shop(folder, conf)
    _lakejoin("run", file)
    names = ("sales.sold", "sales.sold_history", "sales.days")
    told = _told(conf, *names)
    assert [(told[name]["listed"], told[name]["rows"]) for name in names] == [(True, 2)] * 3
    assert told["sales.sold"]["location"] == f"file:{folder}/lake/joins/sold/joined"
    assert (told["sales.sold"]["comment"], told["sales.sold_history"]["comment"]) == (
        "what was sold",
        "what was sold then",
    )
    assert told["sales.sold"]["columns"]["right_country"] == "of the customer"
    assert told["sales.sold"]["owner"] == getpass.getuser()
    write_lines(folder / "orders" / "2024-01-03.jsonl", [{"op": "d", "id": 1}])
    _lakejoin("run", file, "--rebuild", "sold")
    told = _told(conf, *names)
    assert [told[name]["rows"] for name in names] == [1, 2, 1]
    other = _shop(folder / "other", conf)
    message = " ".join(_lakejoin("run", other, succeeds=False).split())
    assert (
        f"sales.sold: the catalog has a table of this name at file:{folder}/lake/joins/sold/joined" in message
    )
    assert not (folder / "other" / "lake" / "_plan").exists()


def test_metastore_of_spark_has_the_tables(tmp_path: Path) -> None:
    """Hive's, within the process, over a database of Derby."""
    _check(
        tmp_path,
        {
            "spark.sql.catalogImplementation": "hive",
            "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
            "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={tmp_path}/metastore;create=true",
        },
    )


def test_hive_metastore_has_the_tables(tmp_path: Path) -> None:
    """A server of version 4, asked by a client of its own version."""
    with hive_metastore(tmp_path) as server:
        _check(tmp_path, server.conf(tmp_path / "warehouse"))
