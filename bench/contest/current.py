"""The current rows of both sides, which whoever recomputes the join is given free of charge."""

from collections.abc import Mapping
from pathlib import Path

from bench.contest.duck import Duck
from bench.tpch.answers import change_file

KEYS: Mapping[str, str] = {"left": "o_orderkey", "right": "c_custkey"}


class CurrentRows:
    """A Parquet file of current rows for each side, brought up to date outside every clock."""

    def __init__(self, workload: Path, folder: Path, settings: Mapping[str, str | int]) -> None:
        self._workload, self._folder, self._settings = workload, folder, settings
        self._database = folder / "current.duckdb"
        folder.mkdir()
        self._run(
            *[
                f"create table {side}_rows as select * exclude (op) "
                f"from read_parquet('{change_file(workload, side, 0)}')"
                for side in KEYS
            ]
        )

    def file(self, side: str) -> Path:
        """Where the rows of a side are; those of the base are in its own file."""
        return self._folder / f"{side}.parquet"

    def advance(self, batch: int) -> None:
        """Bring a batch's changes into the rows: the last one of each key counts."""
        for side, key in KEYS.items():
            changes = f"read_parquet('{change_file(self._workload, side, batch)}')"
            self._run(
                f"delete from {side}_rows where {key} in (select {key} from {changes})",
                f"""insert into {side}_rows select * exclude (op) from {changes}
                    qualify row_number() over (partition by {key} order by "offset" desc) = 1 and op <> 'd'""",
                f"copy {side}_rows to '{self.file(side)}' (format parquet)",
            )

    def _run(self, *statements: str) -> None:
        # a process for each time: between them nothing holds memory
        with Duck(self._database, self._settings) as duck:
            duck.execute(*statements)
