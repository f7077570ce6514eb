"""Runs a history of a stream and a table through the product, and compares every batch with the models."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import yaml
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakejoin.orchestration.config import load
from lakejoin.orchestration.runs.run import run_batches
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake, joined_of
from lakejoin.storage.lake.plan import Published
from properties.stream_model import JOINS, StreamModel, Taken
from properties.streams import Event, History, Side

_FIRST_DAY = date(2024, 2, 27)
_SIDES: Mapping[str, Side] = {"uses": "stream", "prices": "table", "latest": "table"}
"""Stream and tables of the pipeline, with the side whose records they read: `latest` is `prices` without history."""
_COLUMNS: dict[str, Any] = {"v": "string", "ts": {"type": "timestamp", "as": "millis"}, "seq": "bigint"}


class StreamTrial:
    """A lake of its own, with the model of what it must hold."""

    def __init__(self, history: History, folder: Path, spark: SparkSession, history_retention: int) -> None:
        """Prepare the configuration in the folder; nothing runs yet."""
        self.history, self.folder, self.spark = history, folder, spark
        self.pipeline = load(_write_configuration(folder, history_retention))
        self.lake = Lake(self.pipeline.lake)
        self.model = StreamModel(history_retention)
        self.files: dict[tuple[str, int], list[Event]] = {}

    def run(self) -> dict[str, Counter[str]]:
        """Let the days arrive, one arrival after the other, compare after every batch, and flush in the end.

        Returns what each join emitted altogether. Raises `AssertionError` where a batch went wrong.
        """
        emitted: dict[str, Counter[str]] = {join: Counter() for join in JOINS}
        for arrival in self.history.arrivals:
            self._write_files(arrival.days)
            for report in run_batches(
                self.pipeline, self.spark, batch_by=arrival.batch_by, batch_rows=arrival.batch_rows
            ):
                taken = self.model.take(
                    self._records("latest"), self._records("prices"), self._records("uses")
                )
                self._compare(report, taken, emitted)
        assert sum(map(len, self.files.values())) == sum(
            len(_SIDES) - 1 if event.side == "table" else 1 for event in self.history.events
        )
        for report in run_batches(self.pipeline, self.spark, flush=True):
            self._compare(report, self.model.flush(), emitted)
        return emitted

    def _write_files(self, days: Iterable[int]) -> None:
        for day in days:
            for name, side in _SIDES.items():
                records = [event for event in self.history.events if (event.side, event.day) == (side, day)]
                if records:
                    self.files[name, day] = records
                    path = self.folder / name / f"{_FIRST_DAY + timedelta(days=day)}.jsonl"
                    path.write_text("".join(f"{_source_line(event)}\n" for event in records), "utf-8")

    def _records(self, name: str) -> list[tuple[tuple[str, int], Event]]:
        """The records that the last planned batch reads of a table or stream, with their positions."""
        found = []
        for file in Journal(self.lake).plans[-1].files_of(name):
            assert file.date is not None
            lines = self.files[name, (file.date - _FIRST_DAY).days]
            found += [
                ((file.date.isoformat(), line), lines[line - 1])
                for line in range(file.from_line + 1, file.to_line + 1)
            ]
        return sorted(found, key=lambda placed: placed[0])

    def _compare(self, report: Published, taken: Taken, emitted: Mapping[str, Counter[str]]) -> None:
        where = f"batch {report.batch} ({report.kind})"
        for name, wanted in taken.inputs.items():
            _check_counts(f"{where}, {name}", wanted, report.tables[name])
        clocks = {name: time for name, time in report.clocks.items() if name in taken.clocks}
        assert {name: round(time.timestamp() * 1000) for name, time in clocks.items()} == taken.clocks, where
        for join, wanted in taken.joins.items():
            _check_counts(f"{where}, {join}", wanted, report.joins[join])
            found = self._emitted(join, report.batch)
            missing, surplus = taken.rows[join] - found, found - taken.rows[join]
            assert not missing + surplus, (
                f"{where}, {join}: missing {sorted(missing.elements())[:3]}, "
                f"too many {sorted(surplus.elements())[:3]}\n{self._told()}"
            )
            emitted[join].update(found)

    def _emitted(self, join: str, batch: int) -> Counter[str]:
        path = self.lake.path(joined_of(join))
        if not (Path(path) / "_delta_log").is_dir():
            return Counter()
        rows = self.spark.read.format("delta").load(path).where(F.col("_lj_batch") == batch)
        times = {name: F.unix_millis(name) for name in ("ts", "right_ts")}
        shown = [times.get(name, F.col(name)).alias(name) for name in Taken.COLUMNS]
        return Counter(json.dumps(list(row)) for row in rows.select(*shown).collect())

    def _told(self) -> str:
        """The history, for a failure: it is not shrunk."""
        events = "\n".join(f"  {event}" for event in self.history.events)
        return f"arrivals: {self.history.arrivals}\nrecords:\n{events}"


def _check_counts(where: str, wanted: Mapping[str, int], got: Mapping[str, int]) -> None:
    found = {name: got.get(name, 0) for name in wanted}
    assert found == wanted, f"{where}: expected {dict(wanted)}, got {found}"


def _write_configuration(folder: Path, history_retention: int) -> Path:
    inputs: dict[str, dict[str, Any]] = {}
    for name, side in _SIDES.items():
        (folder / name).mkdir()
        own: dict[str, Any] = {"id": "bigint", "fk": "string"} if side == "stream" else {"k": "string"}
        inputs[name] = {
            "source": {"format": "jsonl", "path": f"{name}/{{date}}.jsonl"},
            "columns": {**own, **_COLUMNS},
            "key": ["id" if side == "stream" else "k"],
            "sequence": ["seq"],
        }
    inputs["uses"] |= {"event_time": "ts", "where": "v <> 'skip'"}
    retention = {"history_retention": f"{history_retention} milliseconds"}
    inputs["prices"] |= {"event_time": "ts", "versioned": retention}
    stream = inputs.pop("uses")
    document = {
        "name": "trial",
        "lake": "./lake",
        "tables": inputs,
        "streams": {"uses": stream},
        "joins": {name: join.configuration for name, join in JOINS.items()},
    }
    path = folder / "lakejoin.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")
    return path


def _source_line(event: Event) -> str:
    own: dict[str, Any] = {"id": event.id, "fk": event.key} if event.side == "stream" else {"k": event.key}
    op = "d" if event.value is None else "u"
    return json.dumps({"op": op, **own, "v": event.value, "ts": event.time, "seq": event.sequence})
