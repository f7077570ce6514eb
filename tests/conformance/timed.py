"""Runs cases whose answers depend on event times through one pipeline, and says what they expect."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from conformance.case import Batches, Case, Emission, sorted_emissions, text, to_json
from conformance.pipeline import FIRST_DAY, Answers, flat_row, joined_value, lake_rows
from conformance.places import Place, places_of, write_configuration
from lakejoin.orchestration.config import load
from lakejoin.orchestration.runs.run import run_batches


def run_timed(
    cases: Sequence[Case],
    batches: Batches,
    folder: Path,
    spark: SparkSession,
    progress: Callable[[int, int], None],
) -> dict[str, Answers]:
    """Run the cases in one pipeline below `folder` and return what each was answered, by its name."""
    places = places_of(cases)
    pipeline = load(write_configuration(places, folder))
    days = _write_sources(places, batches, folder)
    batch_days: dict[int, int] = {}
    for done, report in enumerate(run_batches(pipeline, spark), start=1):
        batch_days[report.batch] = (report.dates[0] - FIRST_DAY).days
        progress(done, len(days))
    joins = Path(pipeline.lake) / "joins"
    return {
        place.case.name: (_outputs if place.case.is_stream else _changelog)(
            place, joins / place.join, batch_days, spark
        )
        for place in places
    }


def expected_outputs(case: Case, end: int) -> list[list[Emission]]:
    """Return what each event before `end` emits, every output with its time, in the order of comparison."""
    outputs: list[list[Emission]] = [[] for _ in range(end)]
    for line in case.expected:
        if line["i"] < end:
            outputs[line["i"]].append(_output(line["key"], *_texts(line["value"]), line["ts"]))
    return [_sorted(of_event) for of_event in outputs]


def _texts(value: Mapping[str, object]) -> list[str | None]:
    return [text(value[member]) for member in ("left", "right")]


def _output(key: str | None, left: str | None, right: str | None, time: int) -> Emission:
    # a null key sorts before all others
    return key or "", {"left": left, "right": right, "ts": time}


def _sorted(outputs: Iterable[Emission]) -> list[Emission]:
    return sorted(outputs, key=to_json)


def _write_sources(places: Iterable[Place], batches: Batches, folder: Path) -> list[int]:
    """Write each event into the file of its table and day; return the days that have any."""
    lines: defaultdict[tuple[str, int], list[str]] = defaultdict(list)
    for place in {(place.pair, place.records): place for place in places}.values():
        for side in place.sides:
            (folder / f"{place.pair}_{side}").mkdir(exist_ok=True)  # a side may have no events
        for number, (event, day) in enumerate(zip(place.case.events, batches.cut(place.case), strict=False)):
            own = {"ts": event["ts"], **({"number": number} if event["side"] == "stream" else {})}
            lines[f"{place.pair}_{event['side']}", day].append(to_json(flat_row(place.records, event) | own))
    for (table, day), rows in lines.items():
        path = folder / table / f"{FIRST_DAY + timedelta(days=day)}.jsonl"
        path.write_text("".join(f"{row}\n" for row in rows), "utf-8")
    return sorted({day for _, day in lines})


def _outputs(place: Place, join: Path, batch_days: Mapping[int, int], spark: SparkSession) -> Answers:
    """What a stream's join emitted; there is no final table."""
    outputs: list[list[Emission]] = [[] for _ in place.case.events]
    if (join / "joined" / "_delta_log").is_dir():  # not there where nothing ever matched
        rows = spark.read.format("delta").load(str(join / "joined")).where(F.col("case_id") == place.records)
        for row in rows.select("*", F.unix_millis("ts").alias("time")).collect():
            output = _output(row["key"], row["value"], row["right_value"], row["time"])
            outputs[batch_days[row["_lj_batch"]]].append(output)
    return Answers([_sorted(of_event) for of_event in outputs], {})


def _changelog(place: Place, join: Path, batch_days: Mapping[int, int], spark: SparkSession) -> Answers:
    """What a foreign-key join emitted, and its joined table."""
    emissions: list[list[Emission]] = [[] for _ in place.case.events]
    for row in lake_rows(spark, join / "changelog"):
        value = None if row["_lj_tombstone"] else joined_value(row)
        emissions[batch_days[row["_lj_batch"]]].append((row["key"], value))
    table = {row["key"]: joined_value(row) for row in lake_rows(spark, join / "joined")}
    return Answers([sorted_emissions(of_event) for of_event in emissions], table)
