"""Works off a small pipeline of its own, by which a JVM loads and compiles what runs need.

As a process of its own (`python -m lakejoin.orchestration.runs.warm_up FOLDER`) it reads from standard input,
as JSON, what the session is started with, for the JVM writes its archive when it ends.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import yaml

_DAYS = [date(2024, 1, day) for day in (1, 2, 3)]
_ROWS = 300
"""Orders a day: as many as a small batch has, for large ones go other ways, in time that is theirs."""
_PIPELINE = {
    "name": "warm_up",
    "lake": "./lake",
    "engine": {"resident": False},
    "tables": {
        "orders": {
            "source": {"format": "debezium", "path": "data/orders/{date}.jsonl"},
            "columns": {
                "id": "bigint", "customer": "string", "price": "decimal(12,2)", "pieces": "int", "paid": "timestamp",
                "state": "string", "changed_at": "timestamp",
            },
            "key": ["id"], "sequence": ["lsn"], "event_time": "changed_at",
        },
        "customers": {
            "source": {"format": "debezium", "path": "data/customers/{date}.jsonl"},
            "columns": {"customer": "string", "city": "string", "score": "double", "changed_at": "timestamp"},
            "key": ["customer"], "sequence": ["lsn"], "event_time": "changed_at",
            "versioned": {"history_retention": "10 days"},
        },
    },
    "streams": {
        "payments": {
            "source": {"format": "debezium", "path": "data/orders/{date}.jsonl"},
            "columns": {"id": "bigint", "customer": "string", "paid": "timestamp", "state": "string"},
            "key": ["id"], "sequence": ["lsn"], "event_time": "paid", "where": "state = 'paid'",
        },
    },
    "joins": {
        "known": {"left": "orders", "right": "customers", "foreign_key": ["customer"], "how": "left", "prefix": "by_"},
        "sold": {"left": "orders", "right": "customers", "foreign_key": ["customer"], "how": "inner", "prefix": "of_"},
        "paid": {
            "stream": "payments", "table": "customers", "foreign_key": ["customer"], "how": "left", "grace": "2 hours",
            "prefix": "by_",
        },
    },
}  # fmt: skip


def write_pipeline(folder: Path) -> Path:
    """Write the configuration of the pipeline and the files of its days; return the path of the configuration."""
    for number, day in enumerate(_DAYS):
        for table, records in (("orders", _orders(number, day)), ("customers", _customers(number, day))):
            path = folder / "data" / table / f"{day}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    config = folder / "lakejoin.yaml"
    config.write_text(yaml.safe_dump(_PIPELINE, sort_keys=False), "utf-8")
    return config


def _orders(number: int, day: date) -> Iterator[Mapping[str, Any]]:
    """New orders; those of the day before change their customer, are paid, or are deleted."""
    first, before = number * _ROWS, max(number - 1, 0) * _ROWS
    for place, row in enumerate(range(before, first + _ROWS)):
        at = datetime.combine(day, time(), UTC) + timedelta(minutes=2 * place)
        values = {
            "id": row, "customer": f"c{(row + number) % 80}", "price": f"{row}.25", "pieces": row % 7,
            "paid": int(at.timestamp() * 1e6), "state": "paid" if row % 3 else "open", "changed_at": at.isoformat(),
        }  # fmt: skip
        op = "c" if row >= first else "d" if row % 10 == 0 else "u"
        yield _change(op, values, number * 10**6 + place)


def _customers(number: int, day: date) -> Iterator[Mapping[str, Any]]:
    """Customers of whom each day some are new, some move, and one goes."""
    for row in range(20 * number, 20 * number + 60):
        at = datetime.combine(day, time(), UTC) + timedelta(minutes=10 * (row % 60))
        values = {
            "customer": f"c{row}",
            "city": f"city {number}",
            "score": row / 7,
            "changed_at": at.isoformat(),
        }
        yield _change("d" if row == 20 * number + 9 and number else "c", values, number * 10**6 + row)


def _change(op: str, values: Mapping[str, Any], lsn: int) -> Mapping[str, Any]:
    """A change as Debezium tells it."""
    before, after = (values, None) if op == "d" else (None, values)
    return {"before": before, "after": after, "op": op, "source": {"lsn": lsn}}


def main() -> None:
    """Work off the days of the pipeline in a folder, then check them."""
    from lakejoin.orchestration.checks.check_lake import check_lake
    from lakejoin.orchestration.config import load
    from lakejoin.orchestration.runs.run import run_batches
    from lakejoin.storage.spark.session import start_session

    spark = start_session(**json.load(sys.stdin))
    pipeline = load(Path(sys.argv[1], "lakejoin.yaml"))
    for _ in run_batches(pipeline, spark):
        pass
    if not check_lake(pipeline, spark, batches=None, run="warm_up").passed:
        sys.exit("the checks of the pipeline failed")


if __name__ == "__main__":
    main()
