"""The joins that every scenario runs, and what they must hold: by the model, and by Spark's own join.

Inner and left over one pair of tables, a join over a join, a table joined with itself, and a star of all these.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from properties.scenarios import Side
from reference.foreign_key_join import How
from reference.tables import relational_join

Row = Mapping[str, Any]
CaseKey = tuple[int, str]
"""Sequence and key: no two sequences ever meet."""

COLUMNS: Mapping[Side, Mapping[str, str]] = {
    "left": {
        "case_id": "int", "key": "string", "fk": "string", "fk2": "string", "v": "string", "seq": "bigint",
    },
    "right": {"case_id": "int", "key": "string", "v": "string", "seq": "bigint"},
}  # fmt: skip
TABLES: Mapping[Side, str] = {"left": "left_rows", "right": "right_rows"}


def _join(left: str, right: str, member: str, how: How, prefix: str) -> dict[str, Any]:
    return {"left": left, "right": right, "foreign_key": ["case_id", member], "how": how, "prefix": prefix}


JOINS: Mapping[str, dict[str, Any]] = {
    "matched": _join("left_rows", "right_rows", "fk", "inner", "right_"),
    "enriched": _join("left_rows", "right_rows", "fk", "left", "right_"),
    "enriched_twice": _join("enriched", "right_rows", "fk2", "inner", "second_"),
    "with_parent": _join("left_rows", "left_rows", "fk2", "left", "parent_"),
}
"""As the configuration file has them."""
VARIANTS: Mapping[str, dict[str, Any]] = {
    "matched": JOINS["matched"] | {"resolution": "highwater"},
    "enriched": JOINS["enriched"] | {"resolution": "highwater"},
    "paired": JOINS["matched"] | {"result_key": "combined"},
    "paired_twice": _join("paired", "right_rows", "fk2", "left", "second_") | {"resolution": "highwater"},
}
"""The two other variants of the foreign-key join, one also as the left side of another join."""
STARS: Mapping[str, dict[str, Any]] = {
    "starred": {
        "left": "left_rows",
        "rights": {
            "right": {"table": "right_rows", "foreign_key": ["case_id", "fk"], "how": "inner"},
            "second": {"table": "right_rows", "foreign_key": ["case_id", "fk2"], "how": "left"},
            "parent": {"table": "left_rows", "foreign_key": ["case_id", "fk2"], "how": "left"},
        },
    },
    "star_of_inner_sides": {
        "left": "left_rows",
        "rights": {
            "right": {"table": "right_rows", "foreign_key": ["case_id", "fk"], "how": "inner"},
            "second": {"table": "right_rows", "foreign_key": ["case_id", "fk2"], "how": "inner"},
        },
    },
    "after_star": _join("starred", "right_rows", "fk2", "inner", "third_"),
}
"""A table with several others at once, also as the left side of another join."""
GROUPS: Mapping[str, dict[str, Any]] = {
    "counted": {"of": "left_rows", "by": ["case_id", "fk"], "select": {"n": "count(*)", "total": "sum(seq)"}},
    "listed": {
        "of": "enriched",
        "by": ["case_id", "right_v"],
        "select": {"most": "max(seq)", "keys": "collect(key, order by key)"},
    },
}
"""Of a table, adjusted; of a join, computed anew."""


def sides_of(name: str, join: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The right sides of a join as joins with one right side, by the names that their messages are kept under."""
    if "of" in join:
        return {}
    if "rights" not in join:
        return {name: dict(join)}
    return {
        f"{name}/{side}": {"left": join["left"], "prefix": f"{side}_", **right, "right": right["table"]}
        for side, right in join["rights"].items()
    }


def joined_by_model(
    tables: Mapping[str, Mapping[Any, Row]],
    joins: Mapping[str, dict[str, Any]] = JOINS,
    columns: Mapping[Side, Iterable[str]] = COLUMNS,
) -> dict[str, dict[CaseKey, Row]]:
    """Return the rows of every join, by key, given the current rows of the tables by `CaseKey`.

    `columns`: of the tables, where they are not the usual ones.
    """
    known: dict[str, Mapping[CaseKey, Row]] = {
        table: {key: {"case_id": key[0], "key": key[1], **row} for key, row in rows.items()}
        for table, rows in tables.items()
    }
    joined: dict[str, dict[CaseKey, Row]] = {}
    for name, join in joins.items():
        if "of" in join:
            joined[name] = _grouped(known[join["of"]].values(), join)
            continue
        rows = known[join["left"]]
        for side in sides_of(name, join).values():
            right_names = columns["left" if side["right"] == TABLES["left"] else "right"]
            pairs = relational_join(
                rows, known[side["right"]], _foreign_key(side["foreign_key"][1]), side["how"]
            )
            rows = {
                key: {**left, **{side["prefix"] + c: right[c] if right else None for c in right_names}}
                for key, (left, right) in pairs.items()
            }
        known[name] = joined[name] = dict(rows)
    return joined


def _grouped(rows: Iterable[Row], group: Mapping[str, Any]) -> dict[Any, Row]:
    """The row of each group that has rows. The aggregates are those of `GROUPS`."""
    found: dict[Any, list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in group["by"]), []).append(row)
    aggregates: Mapping[str, Callable[[list[Row]], Any]] = {
        "count(*)": len,
        "sum(seq)": lambda of: sum(row["seq"] for row in of),
        "max(seq)": lambda of: max(row["seq"] for row in of),
        "collect(key, order by key)": lambda of: sorted(row["key"] for row in of),
    }
    return {
        key: {
            **dict(zip(group["by"], key, strict=True)),
            **{name: aggregates[text](of) for name, text in group["select"].items()},
        }
        for key, of in found.items()
    }


def _foreign_key(member: str) -> Callable[[Row], CaseKey | None]:
    return lambda row: None if row[member] is None else (row["case_id"], row[member])


def joined_by_spark(
    spark: SparkSession,
    records: Mapping[Side, Sequence[tuple[Any, ...]]],
    joins: Mapping[str, dict[str, Any]] = JOINS,
) -> dict[str, list[Row]]:
    """Return the rows of every join as Spark computes them from all records so far.

    A record holds the columns of its side, whether it is a delete, and its day and line: of a key's records
    the one with the greatest sequence counts, of equal ones the last by position.
    """
    known: dict[str, DataFrame] = {TABLES[side]: _latest(spark, side, rows) for side, rows in records.items()}
    joined = {}
    for name, join in joins.items():
        rows = known[join["left"]]
        for side in sides_of(name, join).values():
            right, prefix = known[side["right"]], side["prefix"]
            right = right.select(*[F.col(column).alias(prefix + column) for column in right.columns])
            same_key = [
                rows[member] == right[prefix + column]
                for member, column in zip(side["foreign_key"], ("case_id", "key"), strict=True)
            ]
            rows = rows.join(right, same_key, side["how"])
        known[name] = rows
        joined[name] = rows_of(rows)
    return joined


def _latest(spark: SparkSession, side: Side, records: Iterable[tuple[Any, ...]]) -> DataFrame:
    columns = ", ".join(f"{name} {dtype}" for name, dtype in COLUMNS[side].items())
    latest = F.max_by(F.struct("*"), F.struct("seq", "day", "line")).alias("latest")
    rows = (
        spark.createDataFrame(list(records), f"{columns}, deleted boolean, day int, line int")
        .groupBy("case_id", "key")
        .agg(latest)
    )
    return rows.where("NOT latest.deleted").select(*[f"latest.{name}" for name in COLUMNS[side]])


def rows_of(frame: DataFrame) -> list[Row]:
    """The rows as dictionaries, internal columns left out."""
    columns = [name for name in frame.columns if not name.startswith("_lj_")]
    return [row.asDict() for row in frame.select(*columns).collect()]
