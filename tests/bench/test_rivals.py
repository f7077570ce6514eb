"""What rivals are given free of charge: current rows, changed rows of the join, copies of tables."""

from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from bench.contest.arguments import parser
from bench.contest.copies import copy_linked
from bench.contest.current import CurrentRows
from bench.contest.live import live_bytes, tables_below
from bench.tpch.answers import change_file
from bench.tpch.schemas import HEAD, LEFT, RIGHT, START


def write_side(workload: Path, side: str, batch: int, changes: Sequence[tuple[str, int, int | None]]) -> None:
    """Write changes of a side: what happens to which key, and its foreign key."""
    schema = {"left": LEFT, "right": RIGHT}[side]
    rows = []
    for place, (op, key, value) in enumerate(changes):
        row = dict.fromkeys(schema.names) | {"op": op, "offset": 100 * batch + place, "event_time": START}
        row[schema.names[len(HEAD)]] = key
        if side == "left":
            row["o_custkey"] = value
        rows.append(row)
    file = change_file(workload, side, batch)
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema), file)


def test_changed_rows_of_the_join_are_those_a_batch_touched_on_either_side(tmp_path: Path) -> None:
    """Moved, deleted and inserted keys of the left, and those that point at a changed key of the right."""
    write_side(tmp_path, "left", 0, [("r", 1, 7), ("r", 2, 7), ("r", 3, 8), ("r", 4, 9), ("r", 5, 8)])
    write_side(tmp_path, "right", 0, [("r", 7, None), ("r", 8, None), ("r", 9, None)])
    write_side(tmp_path, "left", 1, [("u", 1, 8), ("d", 4, None), ("c", 6, None), ("u", 6, 70)])
    write_side(tmp_path, "right", 1, [("d", 7, None)])
    current = CurrentRows(tmp_path, tmp_path / "current", {})

    current.advance(1)
    current.write_changed(tmp_path / "changed.parquet")

    found = duckdb.sql(
        f"select o_orderkey, o_custkey, right_c_custkey, gone from '{tmp_path}/changed.parquet' order by 1"
    ).fetchall()
    assert found == [(1, 8, 8, False), (2, 7, None, False), (4, None, None, True), (6, 70, None, False)]


def test_current_rows_are_written_once_for_all_who_recompute(tmp_path: Path) -> None:
    """The second who asks for a batch finds the file of the first."""
    for side in ("left", "right"):
        write_side(tmp_path, side, 0, [("r", 1, None)])
        write_side(tmp_path, side, 1, [("d", 1, None), ("c", 2, None)])
    current = CurrentRows(tmp_path, tmp_path / "current", {})
    current.advance(1)

    current.write()
    written = current.file("left").stat().st_mtime_ns
    current.write()

    assert current.file("left").stat().st_mtime_ns == written
    assert pq.read_table(current.file("left"))["o_orderkey"].to_pylist() == [2]


def test_copy_shares_data_files_but_no_logs(tmp_path: Path) -> None:
    """What is written to the copy does not show in the original."""
    original, copy = tmp_path / "original", tmp_path / "copy"
    write_deltalake(original / "t", pa.table({"x": [1]}))
    copy_linked(original, copy)
    write_deltalake(copy / "t", pa.table({"x": [2]}), mode="append")

    assert tables_below(copy) == [copy / "t"]
    assert DeltaTable(original / "t").version() == 0
    data = next((original / "t").glob("*.parquet"))
    assert data.samefile(copy / "t" / data.name)
    log = f"t/_delta_log/{0:020}.json"
    assert not (original / log).samefile(copy / log)


def test_live_bytes_leave_out_files_of_older_versions(tmp_path: Path) -> None:
    """What was replaced is still on the disk, but no part of the table."""
    write_deltalake(tmp_path / "t", pa.table({"x": list(range(1000))}))
    before = live_bytes(tmp_path / "t")
    write_deltalake(tmp_path / "t", pa.table({"x": [1]}), mode="overwrite")

    files = {file.stat().st_size for file in (tmp_path / "t").glob("*.parquet")}
    assert files == {before, live_bytes(tmp_path / "t")}
    assert live_bytes(tmp_path / "none") == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--contenders", "merge"], "merge begins with the joined table of ours"),
        (["--contenders", "ours,ours"], "each once"),
        (["--lake", "nowhere"], "holds no `lake`"),
        (["--rivals-every", "0"], "at least 1"),
    ],
)
def test_wrong_arguments_are_refused_with_what_was_expected(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before a long race begins."""
    with pytest.raises(SystemExit):
        parser().parse_args(["--workload", "w", "--batches", "1", *arguments])
    assert message in capsys.readouterr().err
