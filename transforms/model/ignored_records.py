"""Names the kinds of records that are no change of a row, and counts them.

The kind stands in `DETAIL`, which says of a bad record what is wrong with it; no table has it for others. So lakes that
were there before this was counted need no column more.
"""

from collections.abc import Collection, Mapping
from typing import Literal, get_args

from pyspark.sql import Column
from pyspark.sql import functions as F

from lakejoin.transforms.model.schemas import DETAIL, OP

IgnoredKind = Literal[
    "heartbeat", "transaction", "schema_change", "tombstone", "other_table", "message", "empty", "other", "delete",
    "where",
]  # fmt: skip
"""`tombstone`: one of which nobody can say whose it is. `message`: what somebody put into the log of the database.
`delete` and `where`: of a stream, what is no event of it."""
IGNORED = {f"ignored_{kind}": kind for kind in get_args(IgnoredKind)}
"""What records of each kind are counted as."""


def is_ignored() -> Column:
    """Whether a parser has found that a record is no change of a row."""
    return F.coalesce(F.col(OP) == "ignored", F.lit(False))


def ignored_counts(which: Column) -> list[Column]:
    """Count the records of each kind. `which`: true for those that are ignored."""
    return [F.count_if(which & (F.col(DETAIL) == kind)).alias(name) for name, kind in IGNORED.items()]


def without_none(counts: Mapping[str, int], rare: Collection[str] = IGNORED) -> dict[str, int]:
    """Leave out what did not occur of what is `rare`: by default the kinds."""
    return {name: count for name, count in counts.items() if count or name not in rare}
