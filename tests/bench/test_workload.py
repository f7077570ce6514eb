"""The workload: the same arguments make the same changes, and the answers are those of its definition."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from bench.tpch.answers import Answer, Joined, answer_file, change_file
from bench.workload import Size, make

SIZE = Size(scale=0.001, batches=2, left_changes=200, right_changes=10, seed=1)
ANSWERS = [
    Answer(1500, 880549356774121719862, 1500, 880549356774121719862),
    Answer(1472, 852499194019062002959, 1492, 865281010650161627442),
    Answer(1447, 831331563825763105757, 1487, 856123964936536997839),
]
"""What the joins of this size hold, recorded when it was first made."""


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield an empty DuckDB."""
    with duckdb.connect() as opened:
        yield opened


def test_same_arguments_make_the_same_workload(tmp_path: Path, connection: duckdb.DuckDBPyConnection) -> None:
    """Results of different days are comparable: rows and answers are as they were recorded."""
    said = list(make(tmp_path, SIZE, connection))

    assert said[-1] == "batch 2: 200 + 10 changes, inner 1447, left 1487"
    assert [Answer.parse(answer_file(tmp_path, batch).read_text()) for batch in range(3)] == ANSWERS
    assert [pq.read_metadata(change_file(tmp_path, "left", batch)).num_rows for batch in range(3)] == [
        *(1500, 200, 200)
    ]


def test_checksum_is_the_sum_of_the_first_60_bits_of_md5(
    tmp_path: Path, connection: duckdb.DuckDBPyConnection
) -> None:
    r"""Key, foreign key, price and balance make the text; what is missing is `\N`."""
    orders = "(1, 7, 10.00::decimal(15,2)), (2, 8, -0.50), (3, null, null)"
    customers = "(7, 1234.50::decimal(15,2)), (9, 1.00)"
    for side, rows, names in (
        ("left", orders, "o_orderkey, o_custkey, o_totalprice"),
        ("right", customers, "c_custkey, c_acctbal"),
    ):
        file = change_file(tmp_path, side, 0)
        file.parent.mkdir()
        connection.execute(f"copy (select * from (values {rows}) as t({names})) to '{file}' (format parquet)")
    matched, others = ["1|7|10.00|1234.50"], [r"2|8|-0.50|\N", r"3|\N|\N|\N"]

    answer = Joined(connection, tmp_path).answer()

    assert answer == Answer(1, _checksum(matched), 3, _checksum(matched + others))
    assert Answer.parse(answer.text) == answer


def _checksum(texts: list[str]) -> int:
    return sum(int(hashlib.md5(text.encode()).hexdigest()[:15], 16) for text in texts)
