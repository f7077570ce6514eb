"""A small pipeline of a stream and a versioned table: records wait, come late, and history is corrected."""

from pathlib import Path

from faults.shop import make_pipeline, write_lines
from lakejoin.orchestration.config import Pipeline

CONFIGURATION = """\
name: board
lake: ./lake
tables:
  weather:
    source: {format: jsonl, path: "weather/{date}.jsonl"}
    columns: {station: string, temp: int, at: timestamp}
    key: [station]
    event_time: at
    versioned: {history_retention: 1 day}
streams:
  departures:
    source: {format: jsonl, path: "departures/{date}.jsonl"}
    columns: {id: int, station: string, at: timestamp}
    key: [id]
    event_time: at
joins:
  at_time: {stream: departures, table: weather, foreign_key: [station], how: left, grace: 2 hours}
  known: {stream: departures, table: weather, foreign_key: [station], how: inner, prefix: weather_}
"""
WEATHER = {
    "2024-01-01": [("EWR", 1, "01T06"), ("JFK", 2, "01T07")],
    # a correction, one in time, one late, one too old, and one without a time
    "2024-01-02": [
        ("JFK", 5, "01T07"), ("EWR", 3, "02T10"), ("EWR", 4, "01T20"), ("EWR", 6, "01T01"), ("JFK", 7, None),
    ],
    "2024-01-03": [("LGA", 8, "03T01"), ("EWR", 9, "03T02")],
}  # fmt: skip
DEPARTURES = {
    "2024-01-01": [(1, "EWR", "01T08"), (2, "JFK", "01T09"), (3, None, "01T09")],
    # what waited leaves, one waits, one comes late, one is from the far future
    "2024-01-02": [(4, "EWR", "02T11"), (5, "LGA", "02T11"), (6, "EWR", "02T08"), (7, "JFK", "09T00")],
    "2024-01-03": [(8, "LGA", "03T05"), (9, "EWR", "03T06")],
}
DAYS = tuple(WEATHER)


def write_sources(folder: Path, days: list[str]) -> None:
    """Write the sources of some days."""
    sources = (
        ("weather", ("station", "temp", "at"), WEATHER),
        ("departures", ("id", "station", "at"), DEPARTURES),
    )
    for name, columns, given in sources:
        for day in days:
            rows = [dict(zip(columns, row, strict=True)) | {"op": "c"} for row in given[day]]
            for row in rows:
                row["at"] = None if row["at"] is None else f"2024-01-{row['at']}:00:00Z"
            write_lines(folder / name / f"{day}.jsonl", rows)


def make_board(folder: Path, days: list[str]) -> Pipeline:
    """Write the pipeline's configuration, and its sources of some days."""
    write_sources(folder, days)
    return make_pipeline(folder, CONFIGURATION)
