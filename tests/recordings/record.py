"""Records change data anew: real databases, captured by a real Debezium in several settings, and their own answers.

`make record`, or `cd tests && python -m recordings.record [postgres] [mariadb]`, writes a folder of `tests/data` for
each: what was captured in each step of the history in the folder here of that name, and what the database itself
answered after the step. It installs what it needs where it may.
"""

import gzip
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from examples.kafka.broker import VERSION as KAFKA
from places.schema_registry import VERSION as REGISTRY
from recordings.changes import first_rows, later_rows
from recordings.databases import Database, install, start
from recordings.engine import VERSION, Engines, jars
from recordings.kafka import Kafka, kafka, schemas_of
from recordings.settings import NOTIFICATIONS, SETTINGS, is_end_of_snapshot, is_mark, properties

HERE, DATA = Path(__file__).parent, Path(__file__).parents[1] / "data"
_SEED = 20261128
_NEW_ORDERS = {2: range(41, 60), 3: range(60, 80)}
"""The numbers of the orders that are new in a step; the first step is what is there before Debezium looks."""
_WITH_SNAPSHOT = 3
"""The step in which an incremental snapshot runs."""
_TABLES = ("customers", "orders", "items", "kinds", "edges", "documents")
_STREAMING = {
    "postgres": "select count(*) from pg_replication_slots where active",
    "mariadb": "select count(*) from information_schema.processlist where command like 'Binlog Dump%'",
}


def record(kind: str) -> None:
    """Record one database in all its settings."""
    folder = Path(tempfile.mkdtemp(prefix=f"lakejoin-{kind}-"))
    folder.chmod(0o755)
    database = start(kind, folder)
    try:
        with kafka(folder) as started:
            _record(kind, database, started, folder)
    finally:
        database.stop()
    shutil.rmtree(folder)


def _record(kind: str, database: Database, started: Kafka, folder: Path) -> None:
    with_tags = kind == "postgres"
    database.ask("\n".join([(HERE / kind / "1.sql").read_text("utf-8"), *first_rows(_SEED, with_tags)]))
    settings = {
        name: properties(kind, name, database.port, (*_TABLES, "marks", "signals"), str(folder), started)
        for name in SETTINGS[kind]
    }
    engines = Engines(folder / "engines", jars(), settings)
    try:
        while int(database.ask(_STREAMING[kind])) < len(settings):
            engines.check()
            time.sleep(1)
        answers = {1: _answers(kind, database)}
        _mark(database, engines, 1)
        for step in range(2, len(list((HERE / kind).glob("*.sql"))) + 1):
            orders = _NEW_ORDERS.get(step)
            random = [] if orders is None else later_rows(_SEED + step, orders, with_tags)
            database.ask("\n".join([*random, (HERE / kind / f"{step}.sql").read_text("utf-8")]))
            if step == _WITH_SNAPSHOT:
                engines.wait_for(is_end_of_snapshot)
            answers[step] = _answers(kind, database)
            _mark(database, engines, step)
    finally:
        engines.stop()
    _write(kind, engines, answers, database.version, schemas_of(started.schemas))


def _mark(database: Database, engines: Engines, step: int) -> None:
    """End a step: by a row that all have captured."""
    database.ask(f"insert into marks values ({step});")
    engines.wait_for(lambda line: is_mark(line, step))


def _answers(kind: str, database: Database) -> dict[str, str]:
    """What the database answers to each question, as lines of JSON."""
    found = sorted((HERE / kind / "answers").glob("*.sql"))
    return {path.stem: database.ask(path.read_text("utf-8")) for path in found}


def _write(
    kind: str, engines: Engines, answers: dict[int, dict[str, str]], version: str, schemas: list[Any]
) -> None:
    into = DATA / f"debezium-{kind}"
    shutil.rmtree(into, ignore_errors=True)
    for name, setting in SETTINGS[kind].items():
        step, files = 1, dict[str, list[str]]()
        for topic, line in engines.lines(name):
            table = topic.rpartition(".")[2]
            if table in _TABLES if setting.alone else topic != NOTIFICATIONS:
                place = f"{name}/{table}/{step}" if setting.alone else f"{name}/{step}"
                files.setdefault(place, []).append(setting.form(line))
            step += is_mark(line, step)
        for place, lines in files.items():
            _write_lines(into / f"{place}.jsonl.gz", lines)
        if setting.in_kafka:
            _write_lines(into / f"{name}/schemas.jsonl.gz", [json.dumps(schema) for schema in schemas])
    for step, questions in answers.items():
        for question, rows in questions.items():
            _write_lines(into / f"answers/{question}/{step}.jsonl.gz", rows.splitlines())
    (into / "README.md").write_text(
        _README.format(
            kind=kind,
            version=version,
            debezium=VERSION,
            seed=_SEED,
            kafka=KAFKA,
            registry=REGISTRY,
        ),
        "utf-8",
    )


def _write_lines(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(text, 9, mtime=0))


_README = """\
# Recorded from a real database

`make record ONLY={kind}` made these files. What it did to the database is in
`tests/recordings/{kind}` and, for the changes at random (seed {seed}), in `tests/recordings/changes.py`; how Debezium
was set in each folder, in `tests/recordings/settings.py`.

| | |
|---|---|
| database | {version} |
| Debezium | {debezium}, embedded engine, from `io.debezium:debezium-server-dist` |
| of `avro` | Kafka {kafka}, Apicurio Registry {registry} and the converter of that distribution |

Each folder but `answers` is a setting. The files in it are the steps of the history: `1` is the initial snapshot; in
`3` an incremental snapshot runs beside the changes. `answers/QUESTION/STEP.jsonl.gz` is what the database itself
answered when the step had ended. The records of `avro` are as the broker took them: topic, partition, offset, key and
value in base64; `schemas.jsonl.gz` is what the registry held. A change with `binlog_row_image=minimal` is not among
MariaDB's: Debezium stops at it.
"""


if __name__ == "__main__":
    for wanted in sys.argv[1:] or SETTINGS:
        install(wanted)
        record(wanted)
