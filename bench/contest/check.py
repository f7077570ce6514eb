"""Whether a joined table is right: a wrong answer has no speed."""

from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from bench.contest.contender import PREFIX
from bench.tpch.answers import Answer, answer_file
from lakejoin.storage.errors import LakejoinError

NULL = r"\N"
_COLUMNS = ("o_orderkey", "o_custkey", "o_totalprice", f"{PREFIX}c_acctbal")
_SUM = "decimal(38,0)"


class WrongAnswer(LakejoinError):
    """A joined table does not hold what the workload says it must."""


def check(joined: DataFrame, name: str, workload: Path, batch: int) -> None:
    """Hold a contender's joined table against the workload's answer after a batch. Raises `WrongAnswer`."""
    answer = Answer.parse(answer_file(workload, batch).read_text())
    expected, found = (answer.left_count, answer.left_checksum), count_and_checksum(joined)
    if found != expected:
        raise WrongAnswer(
            f"{name}, batch {batch}: the joined table has {found[0]:,} rows with checksum {found[1]}, "
            f"expected {expected[0]:,} with {expected[1]} ({answer_file(workload, batch)})"
        )


def count_and_checksum(joined: DataFrame) -> tuple[int, int]:
    """Count the rows of a joined table, and sum the first 60 bits of the md5 of their texts."""
    digits = F.substring(F.md5(row_text()), 1, 15)
    row = joined.agg(
        F.count(F.lit(1)).alias("rows"),
        F.coalesce(F.sum(F.conv(digits, 16, 10).cast(_SUM)), F.lit(0).cast(_SUM)).alias("checksum"),
    ).head()
    assert row is not None  # an aggregate of everything always has a row
    return int(row["rows"]), int(row["checksum"])


def row_text() -> Column:
    """The text of a joined row: key, foreign key, price, balance, or `NULL` in their place."""
    return F.concat_ws("|", *[F.coalesce(F.col(name).cast("string"), F.lit(NULL)) for name in _COLUMNS])
