"""The workload: the same arguments make the same changes, and the answers are those of its definition."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from bench.tpch.answers import Answer, Joined, answer_file, change_file
from bench.tpch.schemas import CELEBRITY
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


def test_hot_customer_changes_alone_in_every_second_batch(
    tmp_path: Path, connection: duckdb.DuckDBPyConnection
) -> None:
    """It has its share of the orders, and the other batches leave it as it is."""
    size = Size(0.001, 2, left_changes=50, right_changes=140, seed=1, hot_share=0.02, hot_every=2)
    said = list(make(tmp_path, size, connection))

    orders = pq.read_table(change_file(tmp_path, "left", 0))["o_custkey"].to_pylist()
    changed = [
        pq.read_table(change_file(tmp_path, "right", batch))["c_custkey"].to_pylist() for batch in (1, 2)
    ]
    assert 15 <= orders.count(CELEBRITY) <= 60  # about 30 of 1,500
    assert CELEBRITY not in changed[0]
    assert (len(changed[0]), changed[1]) == (140, [CELEBRITY])
    assert said[-1].startswith("batch 2: 0 + 1 changes")


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
