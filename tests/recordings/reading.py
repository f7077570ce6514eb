"""Reads a recording with its configuration, and the database's own answers, both as texts that can be compared."""

import gzip
import json
import math
import re
import shutil
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    MapType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from faults.shop import run
from lakejoin.orchestration.config import Pipeline, load
from lakejoin.storage.lake.layout import Lake
from lakejoin.transforms.model.schemas import is_internal, named

HERE, DATA = Path(__file__).parent, Path(__file__).parents[1] / "data"
KEYS = {
    "orders_with_customers": ["id"], "items_with_orders": ["order_id", "line"], "kinds_with_customers": ["id"],
    "documents_with_customers": ["id"], "edges_with_customers": ["id"],
}  # fmt: skip
Rows = dict[str, list[dict[str, Any]]]
Special = Mapping[str, Callable[[Mapping[str, Any]], object]]
"""By column, what the database's answer is in the form that Debezium gives it."""


def pipeline_of(kind: str, setting: str, folder: Path, **places: str) -> Pipeline:
    """The pipeline of a setting in a folder of its own, with none of its files. `places`: what it says in capitals."""
    folder.mkdir(parents=True, exist_ok=True)
    text = (HERE / kind / f"{setting}.yaml").read_text("utf-8")
    for name, place in places.items():
        text = text.replace(name.upper(), place)
    (folder / "lakejoin.yaml").write_text(text, "utf-8")
    return load(folder / "lakejoin.yaml")


def add_steps(kind: str, setting: str, folder: Path, steps: Iterable[int]) -> None:
    """Let the files of these steps arrive."""
    for step in steps:
        for path in (DATA / f"debezium-{kind}" / setting).rglob(f"{step}.jsonl.gz"):
            into = folder / path.relative_to(DATA / f"debezium-{kind}")
            into.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, into)


def joined(pipeline: Pipeline, spark: SparkSession) -> tuple[dict[str, StructType], Rows]:
    """The types and rows of every joined table, with all values as texts; in one job."""
    lake, frames, types = Lake(pipeline.lake), list[DataFrame](), dict[str, StructType]()
    for name in pipeline.joins:
        table = spark.read.format("delta").load(lake.path(f"joins/{name}/joined"))
        fields = [field for field in table.schema if not is_internal(field.name)]
        types[name] = StructType(fields)
        texts = F.struct(*[_text(named(field.name), field.dataType).alias(field.name) for field in fields])
        row = F.to_json(texts, {"ignoreNullFields": "false"})
        frames.append(table.select(F.lit(name).alias("name"), row.alias("row")))
    rows: Rows = {name: [] for name in types}
    for found in reduce(DataFrame.unionAll, frames).collect():
        rows[found["name"]].append(json.loads(found["row"]))
    return types, rows


def answers(kind: str, question: str, step: int) -> list[dict[str, Any]]:
    """What the database answered."""
    text = gzip.decompress(
        (DATA / f"debezium-{kind}/answers/{question}/{step}.jsonl.gz").read_bytes()
    ).decode()
    return [json.loads(line) for line in text.splitlines()]


def differences(
    dtype: StructType,
    found: list[dict[str, Any]],
    expected: list[dict[str, Any]],
    key: list[str],
    special: Special,
) -> list[str]:
    """Cells that are not what the database answered, and rows that only one of both has."""
    by_key = [{tuple(int(row[name]) for name in key): row for row in rows} for rows in (found, expected)]
    told = [f"{at}: only {who}" for at in by_key[0].keys() ^ by_key[1].keys()
            for who in ["here" if at in by_key[0] else "in the database"]]  # fmt: skip
    for at in by_key[0].keys() & by_key[1].keys():
        row, answer = by_key[0][at], by_key[1][at]
        for field in dtype:
            if field.name.removeprefix("c_").removeprefix("o_").startswith("__"):
                continue
            own = row[field.name]
            other = special[field.name](answer) if field.name in special else answer[field.name]
            if not _same(own, other, field.dataType):
                told.append(f"{at} {field.name}: {own!r:.200}, the database {other!r:.200}")
    return sorted(told)


def told(kind: str, pipeline: Pipeline, step: int, spark: SparkSession, special: Special) -> list[str]:
    """Every difference between the joined tables and what the database answered after a step."""
    types, rows = joined(pipeline, spark)
    found = list[str]()
    for name, key in KEYS.items():
        cells = differences(types[name], rows[name], answers(kind, name, step), key, special)
        found += [f"{name} {difference}" for difference in cells]
    return sorted(found)


def steps_told(
    kind: str, setting: str, folder: Path, spark: SparkSession, batches: list[list[int]], special: Special
) -> Iterator[tuple[int, list[str]]]:
    """Work off batches of steps; after each, its last step and every difference."""
    pipeline = pipeline_of(kind, setting, folder)
    for batch in batches:
        add_steps(kind, setting, folder, batch)
        assert run(pipeline, spark) == 1
        yield batch[-1], told(kind, pipeline, batch[-1], spark, special)


def _text(value: Column, dtype: DataType) -> Column:
    match dtype:
        case BinaryType():
            return F.lower(F.hex(value))
        case ArrayType():
            return F.to_json(F.transform(value, lambda element: _text(element, dtype.elementType)))
        case MapType() | StructType():
            return F.to_json(value, {"ignoreNullFields": "false"})
        case _:
            return value.cast("string")


def _same(own: Any, other: Any, dtype: DataType) -> bool:  # noqa: PLR0911
    if own is None or other is None:
        return own is None and other is None
    match dtype:
        case ArrayType():
            mine, theirs = (json.loads(side) if isinstance(side, str) else side for side in (own, other))
            pairs = zip(mine, theirs, strict=len(mine) == len(theirs))
            return len(mine) == len(theirs) and all(_same(*pair, dtype.elementType) for pair in pairs)
        case MapType() | StructType():
            return bool(json.loads(own) == json.loads(other))
        case DecimalType() | IntegralType():
            return Decimal(own) == Decimal(str(other))
        case FloatType() | DoubleType():
            mine, theirs = (_number(side, dtype) for side in (float(own), float(other)))
            return mine == theirs or (math.isnan(mine) and math.isnan(theirs))
        case BooleanType():
            return (own == "true") == (str(other).lower() in {"true", "t", "1"})
        case TimestampType() | TimestampNTZType() | DateType():
            return _time(own) == _time(other)
        case _:
            return str(own) == str(other)


def _number(value: float, dtype: DataType) -> float:
    if isinstance(dtype, FloatType) and math.isfinite(value):
        return float(struct.unpack("f", struct.pack("f", value))[0])
    return value


def _time(text: str) -> str:
    """A time without what does not count: a T, a zone of no hours, zeros at its end."""
    plain = re.sub(r"(\+00(:00)?|Z)$", "", text.replace("T", " "))
    return re.sub(r"\.?0+$", "", plain) if "." in plain else plain
