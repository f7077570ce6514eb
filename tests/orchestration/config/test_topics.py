"""Topics in a configuration: the file of their page, and what the source is told of order and start."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.config.loading import load_text

PAGE = Path(__file__).parents[3] / "docs" / "kafka.md"
SOURCE = 'source: {format: kafka, bootstrap_servers: "h:9092", topic: [b, a], value: jsonl'


def pipeline(declared: str, rest: str = "") -> Pipeline:
    """Return a pipeline of a table whose source is topics."""
    table = f"{SOURCE}{declared}}}\n    columns: {{id: bigint, at: timestamp}}\n    key: [id]\n{rest}"
    return load_text(f"name: shop\nlake: ./lake\ntables:\n  orders:\n    {table}", "lakejoin.yaml")


def test_sources_are_told_apart_by_what_their_values_are() -> None:
    """Those of the file on the page about Kafka."""
    (text,) = re.findall(r"```yaml\n(# shop.yaml\n.*?)```", PAGE.read_text(), re.DOTALL)

    found = load_text(text, "lakejoin.yaml")

    assert [type(read.source_format).__name__ for read in found.inputs.values()] == [
        "DebeziumTopic",
        "JsonTopic",
    ]
    assert found.places[1:] == (
        "kafka://kafka1:9092,kafka2:9092/shop.public.orders", "kafka://kafka1:9092,kafka2:9092/customers",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("declared", "start"),
    [
        ("", "earliest"),
        (", start: latest", "latest"),
        (", start: 2026-11-01", datetime(2026, 11, 1, tzinfo=UTC)),
        (", start: 2026-11-01T12:30:00Z", datetime(2026, 11, 1, 12, 30, tzinfo=UTC)),
        (", start: {0: 1500, 12: 0}", {0: 1500, 12: 0}),
    ],
)
def test_topics_begin_where_it_is_declared(declared: str, start: object) -> None:
    """At an end, at a time, or at offsets."""
    found = pipeline(declared).tables["orders"].source.topics(is_ordered=False)

    assert (found.start, found.names) == (start, ("b", "a"))


def test_something_else_than_the_place_orders_records_by_sequence_or_event_time() -> None:
    """So partitions that come later are taken there, and refused elsewhere."""
    versioned = "    event_time: at\n    versioned: {history_retention: 1 day}\n"

    found = [
        pipeline("", rest).tables["orders"].is_ordered for rest in ("", "    sequence: [at]\n", versioned)
    ]

    assert found == [False, True, True]
