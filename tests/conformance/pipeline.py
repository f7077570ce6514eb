"""Runs cases side by side through a pipeline: configuration file, source files, batches, Delta tables.

Every key is composite, (case, key), and so is every foreign key, so that one pair of tables holds all cases
without any of them meeting another. Each batch is a day: its files are `TABLE/DAY.jsonl`.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import yaml
from pyspark.sql import Row, SparkSession

from conformance.case import Batches, Case, Emission, Event, sorted_emissions, text, to_json
from lakejoin.orchestration.config import load
from lakejoin.orchestration.runs.run import run_batches

FIRST_DAY = date(2000, 1, 1)
"""The first batch."""
_TABLES = {"left": "left_rows", "right": "right_rows", "right2": "right2_rows"}
_RIGHT_COLUMNS = {"case_id": "string", "key": "string", "value": "string"}
_COLUMNS = {
    "left": {"case_id": "string", "key": "string", "fk": "string", "fk2": "string", "v": "string"},
    "right": _RIGHT_COLUMNS,
    "right2": _RIGHT_COLUMNS,
}


@dataclass(frozen=True)
class Answers:
    """What the pipeline made of one case."""

    emissions: Sequence[Sequence[Emission]]
    """Of each batch, sorted by key."""
    table: Mapping[str, Any]
    """The joined table after the last batch."""


def run_cases(
    cases: Sequence[Case],
    batches: Batches,
    folder: Path,
    spark: SparkSession,
    progress: Callable[[int, int], None],
    *,
    stars: bool = False,
) -> dict[str, Answers]:
    """Run the cases in one pipeline below `folder` and return what each was answered, by its name.

    With `stars` each join is a star with one right side.
    """
    cuts = {case.name: batches.cut(case) for case in cases}
    days = _write_sources(cases, cuts, folder)
    path = folder / "lakejoin.yaml"
    path.write_text(yaml.safe_dump(_configuration(cases, stars=stars), sort_keys=False), "utf-8")
    pipeline = load(path)
    batch_days: dict[int, int] = {}
    for done, report in enumerate(run_batches(pipeline, spark), start=1):
        batch_days[report.batch] = (report.dates[0] - FIRST_DAY).days
        progress(done, len(days))
    return _read_answers(cases, cuts, batch_days, Path(pipeline.lake), spark)


def _configuration(cases: Iterable[Case], *, stars: bool) -> dict[str, Any]:
    joins = {_join_of(case): case for case in cases}
    sides = ["left", "right", *(["right2"] if any(case.topology == "fk-chain" for case in cases) else [])]
    firsts = {case.how for case in cases}
    declared = {
        f"{how}_join": _join("left_rows", "right_rows", "fk", how, "right_") for how in sorted(firsts)
    }
    declared |= {
        name: _join(f"{case.options['first']}_join", "right2_rows", "fk2", case.options["second"], "right2_")
        for name, case in sorted(joins.items())
        if case.topology == "fk-chain"
    }
    return {
        "name": "conformance",
        "lake": "./lake",
        "tables": {
            _TABLES[side]: {
                "source": {"format": "jsonl", "path": f"{_TABLES[side]}/{{date}}.jsonl"},
                "columns": _COLUMNS[side],
                "key": ["case_id", "key"],
            }
            for side in sides
        },
        "joins": {name: _as_star(join) for name, join in declared.items()} if stars else declared,
    }


def _join(left: str, right: str, member: str, how: str, prefix: str) -> dict[str, Any]:
    sides = {"left": left, "right": right, "foreign_key": ["case_id", member]}
    # what is everything anyway makes no difference
    result = {"select": ["*"], "where": "true"} if how == "left" else {}
    return {**sides, "how": how, "prefix": prefix, "changelog": True, **result}


def _as_star(join: dict[str, Any]) -> dict[str, Any]:
    """The same join as a star with one right side, whose name gives the prefix."""
    side = {"table": join["right"], "foreign_key": join["foreign_key"], "how": join["how"]}
    of_all = {key: join[key] for key in ("left", "changelog", "select", "where") if key in join}
    return of_all | {"rights": {join["prefix"].removesuffix("_"): side}}


def _join_of(case: Case) -> str:
    """Name of the join that answers the case."""
    first = f"{case.how}_join"
    return f"{first}_then_{case.options['second']}" if case.topology == "fk-chain" else first


def _write_sources(cases: Iterable[Case], cuts: Mapping[str, list[int]], folder: Path) -> list[int]:
    """Write each event into the file of its side and day; return the days that have any."""
    lines: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
    for case in cases:
        for event, day in zip(case.events, cuts[case.name], strict=False):
            lines[event["side"], day].append(to_json(flat_row(case.name, event)))
    for table in _TABLES.values():
        (folder / table).mkdir()  # a side may have no events
    for (side, day), rows in lines.items():
        path = folder / _TABLES[side] / f"{FIRST_DAY + timedelta(days=day)}.jsonl"
        path.write_text("".join(f"{row}\n" for row in rows), "utf-8")
    return sorted({day for _, day in lines})


def flat_row(case: str, event: Event) -> dict[str, Any]:
    """The event as a source row: a null value is a delete."""
    key = {"case_id": case, "key": text(event["key"])}
    value = event["value"]
    if value is None:
        return {"op": "d", **key}
    if event["side"] != "left":
        return {"op": "u", **key, "value": text(value)}
    row = {"op": "u", **key, "fk": text(value.get("fk")), "fk2": text(value.get("fk2"))}
    # a member of any type is kept as JSON; a missing one stays missing, for it must equal null
    return row | ({"v": to_json(value["v"])} if value.get("v") is not None else {})


def _read_answers(
    cases: Sequence[Case],
    cuts: Mapping[str, list[int]],
    batch_days: Mapping[int, int],
    lake: Path,
    spark: SparkSession,
) -> dict[str, Answers]:
    emissions: dict[str, list[list[Emission]]] = {
        case.name: [[] for _ in range(max(cuts[case.name], default=-1) + 1)] for case in cases
    }
    tables: dict[str, dict[str, Any]] = {case.name: {} for case in cases}
    for join in sorted({_join_of(case) for case in cases}):
        names = {case.name for case in cases if _join_of(case) == join}
        for row in lake_rows(spark, lake / "joins" / join / "changelog"):
            if row["case_id"] in names:
                value = None if row["_lj_tombstone"] else joined_value(row)
                emissions[row["case_id"]][batch_days[row["_lj_batch"]]].append((row["key"], value))
        for row in lake_rows(spark, lake / "joins" / join / "joined"):
            if row["case_id"] in names:
                tables[row["case_id"]][row["key"]] = joined_value(row)
    return {
        case.name: Answers(
            [sorted_emissions(of_batch) for of_batch in emissions[case.name]], tables[case.name]
        )
        for case in cases
    }


def lake_rows(spark: SparkSession, path: Path) -> list[Row]:
    """All rows of a table of the lake; none where it was never written."""
    if not (path / "_delta_log").is_dir():
        return []  # a join that never emitted anything has no changelog
    return spark.read.format("delta").load(str(path)).collect()


def joined_value(row: Row) -> Any:
    """The joined value as the cases write it."""
    left = {"fk": row["fk"], "fk2": row["fk2"], "v": None if row["v"] is None else json.loads(row["v"])}
    first = {"left": left, "right": row["right_value"]}
    return {"left": first, "right": row["right2_value"]} if "right2_value" in row else first
