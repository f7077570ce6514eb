"""What the files of a workload hold, and the values that its changes draw from."""

import decimal
import random
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

MONEY = pa.decimal128(15, 2)
HEAD = (
    pa.field("op", pa.string()),
    pa.field("offset", pa.int64()),
    pa.field("event_time", pa.timestamp("us", tz="UTC")),
)
"""What every row begins with."""
LEFT = pa.schema(
    [
        *HEAD,
        pa.field("o_orderkey", pa.int64()),
        pa.field("o_custkey", pa.int64()),
        pa.field("o_orderstatus", pa.string()),
        pa.field("o_totalprice", MONEY),
        pa.field("o_orderdate", pa.date32()),
        pa.field("o_orderpriority", pa.string()),
        pa.field("o_comment", pa.string()),
    ]
)
RIGHT = pa.schema(
    [
        *HEAD,
        pa.field("c_custkey", pa.int64()),
        pa.field("c_name", pa.string()),
        pa.field("c_acctbal", MONEY),
        pa.field("c_mktsegment", pa.string()),
        pa.field("c_comment", pa.string()),
    ]
)
START = datetime(2026, 1, 1, tzinfo=UTC)
"""The event time of a row is so many milliseconds after it as its offset says."""
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
CELEBRITY = 1
"""The customer that may be given a good part of all orders."""
DANGLING = 1000
"""So many customer keys past the last one are used as keys that do not exist."""

Row = tuple[Any, ...]
"""The values of a row: with the head where it is written, without it where it is kept."""

_WORDS = (
    *("furious", "final", "pending", "quick", "ironic", "bold"),
    *("regular", "silent", "even", "express", "special", "careful"),
)


def body(schema: pa.Schema) -> list[str]:
    """Return the columns of a side without the head; the first is its key."""
    return list(schema.names[len(HEAD) :])


def common() -> list[str]:
    """Return the columns of the head that a row keeps: all but what happened to it."""
    return [field.name for field in HEAD[1:]]


def money(rng: random.Random) -> decimal.Decimal:
    """Draw an amount from 1.00 to 499,999.99."""
    return decimal.Decimal(rng.randrange(100, 50_000_000)) / 100


def comment(rng: random.Random) -> str:
    """Draw three to nine words."""
    return " ".join(rng.choice(_WORDS) for _ in range(rng.randrange(3, 10)))
