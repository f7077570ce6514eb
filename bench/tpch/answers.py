"""What the joins of a workload hold after each batch: counted by DuckDB, kept as text beside the files."""

from dataclasses import dataclass
from pathlib import Path

import duckdb

_TEXT = r"""o_orderkey::varchar || '|' || coalesce(o_custkey::varchar, '\N') || '|' ||
    coalesce(o_totalprice::varchar, '\N') || '|' || coalesce(c_acctbal::varchar, '\N')"""
"""The text of a joined row, of which the checksum is made."""
_KEPT = {"left": ("o_orderkey", "o_custkey", "o_totalprice"), "right": ("c_custkey", "c_acctbal")}
"""Columns of each side that the text needs; the first is its key."""
_HASH = f"('0x' || substr(md5({_TEXT}), 1, 15))::bigint::hugeint"


@dataclass(frozen=True)
class Answer:
    """Rows of a join, and the sum of their hashes, which does not depend on their order."""

    inner_count: int
    inner_checksum: int
    left_count: int
    left_checksum: int

    @property
    def text(self) -> str:
        """Lines of `name=value`, as `Answer.parse` reads them."""
        return "".join(f"{name}={value}\n" for name, value in vars(self).items())

    @classmethod
    def parse(cls, text: str) -> "Answer":
        """Read lines of `name=value`."""
        pairs = (line.split("=", 1) for line in text.splitlines())
        return cls(**{name: int(value) for name, value in pairs})


def answer_file(workload: Path, batch: int) -> Path:
    """Return where the answer after a batch is kept; the base is batch 0."""
    return workload / "expected" / f"batch-{batch:03d}.txt"


def change_file(workload: Path, side: str, batch: int) -> Path:
    """Return where the change rows of a side are kept; the base is batch 0."""
    return workload / side / (f"batch-{batch:03d}.parquet" if batch else "base.parquet")


class Joined:
    """The current rows of both sides in DuckDB, as far as the checksum needs them."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, workload: Path) -> None:
        self._connection, self._workload = connection, workload
        for side, columns in _KEPT.items():
            connection.execute(
                f"create table {side}_rows as select {', '.join(columns)} from read_parquet(?)",
                [str(change_file(workload, side, 0))],
            )

    def change(self, side: str, batch: int) -> None:
        """Bring a batch's change rows of a side into its rows: the last one of each key counts."""
        columns = _KEPT[side]
        key, path = columns[0], str(change_file(self._workload, side, batch))
        self._connection.execute(
            f"delete from {side}_rows where {key} in (select {key} from read_parquet(?))", [path]
        )
        self._connection.execute(
            f"""insert into {side}_rows select {", ".join(columns)} from read_parquet(?)
                qualify row_number() over (partition by {key} order by "offset" desc) = 1 and op <> 'd'""",
            [path],
        )

    def answer(self) -> Answer:
        """Count and checksum of the inner and the left join as they are now."""
        found = self._connection.execute(
            f"""select count(*) filter (hit), coalesce(sum(hash) filter (hit), 0), count(*), coalesce(sum(hash), 0)
                from (select c_custkey is not null as hit, {_HASH} as hash
                      from left_rows left join right_rows on o_custkey = c_custkey)"""
        ).fetchall()[0]
        return Answer(*[int(value) for value in found])
