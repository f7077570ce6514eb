"""The current rows of both sides, and of the join those that a batch changed: given to rivals free of charge."""

from collections.abc import Mapping
from pathlib import Path

from bench.contest.contender import PREFIX
from bench.contest.duck import Duck
from bench.tpch.answers import change_file
from bench.tpch.schemas import RIGHT, body, common

KEYS: Mapping[str, str] = {"left": "o_orderkey", "right": "c_custkey"}


GONE = "gone"
"""Column of the changed rows of the join: the key has no row any more."""


def right_columns(prefix: str = PREFIX) -> str:
    """The columns of the right side as a list of SQL, with the prefix that they have in the join."""
    return ", ".join(f'"{name}" as {prefix}{name}' for name in (*common(), *body(RIGHT)))


class CurrentRows:
    """A Parquet file of current rows for each side, brought up to date outside every clock."""

    def __init__(self, workload: Path, folder: Path, settings: Mapping[str, str | int]) -> None:
        self._workload, self._folder, self._settings = workload, folder, settings
        self._database = folder / "current.duckdb"
        self._written = 0
        self._batch = 0
        folder.mkdir()
        self._run(
            *[
                f"create table {side}_rows as select * exclude (op) "
                f"from read_parquet('{change_file(workload, side, 0)}')"
                for side in KEYS
            ]
        )

    def file(self, side: str) -> Path:
        """Where `write` puts the rows of a side; those of the base are in its own file."""
        return self._folder / f"{side}.parquet"

    def advance(self, batch: int) -> None:
        """Bring a batch's changes into the rows: the last one of each key counts."""
        self._batch = batch
        for side, key in KEYS.items():
            changes = self._changes(side)
            self._run(
                f"delete from {side}_rows where {key} in (select {key} from {changes})",
                f"""insert into {side}_rows select * exclude (op) from {changes}
                    qualify row_number() over (partition by {key} order by "offset" desc) = 1 and op <> 'd'""",
            )

    def write(self) -> None:
        """Write the rows of both sides to their files, unless they are there already."""
        if self._written != self._batch:
            self._run(*[f"copy {side}_rows to '{self.file(side)}' (format parquet)" for side in KEYS])
            self._written = self._batch

    def write_changed(self, file: Path) -> None:
        """Write the rows of the join that the batch touched, one a key; those that left it have just key and `GONE`."""
        left, right = KEYS.values()
        touched = {side: f"select {key} from {self._changes(side)}" for side, key in KEYS.items()}
        self._run(
            f"""copy (
                select l.*, r.*, false as {GONE} from left_rows l
                left join (select {right_columns()} from right_rows) r on o_custkey = {PREFIX}{right}
                where {left} in ({touched["left"]}) or o_custkey in ({touched["right"]})
                union all by name
                select distinct {left}, true as {GONE} from ({touched["left"]})
                where {left} not in (select {left} from left_rows)
            ) to '{file}' (format parquet)"""
        )

    def _changes(self, side: str) -> str:
        return f"read_parquet('{change_file(self._workload, side, self._batch)}')"

    def _run(self, *statements: str) -> None:
        # a process for each time: between them nothing holds memory
        with Duck(self._database, self._settings) as duck:
            duck.execute(*statements)
