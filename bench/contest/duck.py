"""DuckDB in a process of its own, so that its time and memory are told apart from Spark's.

`python -m bench.contest.duck CONFIG` serves: a line of JSON, a list of SQL statements, is answered by a line of JSON,
the error or null.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO

import duckdb

from lakejoin.storage.errors import LakejoinError

_ROOT = Path(__file__).resolve().parents[2]


class DuckFailed(LakejoinError):
    """DuckDB refused a statement, or its process ended; the message is DuckDB's."""


class Duck:
    """A DuckDB that holds `database`, or nothing but memory where it is None; ends with its block."""

    def __init__(self, database: Path | None, settings: Mapping[str, str | int]) -> None:
        config = {"database": str(database or ":memory:"), "config": dict(settings)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.contest.duck", json.dumps(config)],
            cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    @property
    def pid(self) -> int:
        """The process that works."""
        return self._process.pid

    def execute(self, *statements: str) -> None:
        """Run statements one after the other. Raises `DuckFailed`."""
        self._stream(self._process.stdin).write(json.dumps(statements) + "\n")
        self._stream(self._process.stdin).flush()
        answer = self._stream(self._process.stdout).readline()
        error = json.loads(answer) if answer else "its process ended"
        if error is not None:
            raise DuckFailed(f"DuckDB: {error}")

    def close(self) -> None:
        """End the process, after it has closed its database."""
        self._stream(self._process.stdin).close()
        self._process.wait()
        self._stream(self._process.stdout).close()

    def __enter__(self) -> "Duck":
        """Return the DuckDB itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End its process, whatever happened."""
        self.close()

    @staticmethod
    def _stream(stream: IO[str] | None) -> IO[str]:
        assert stream is not None  # all that are used are pipes
        return stream


def serve(questions: IO[str], answers: IO[str], connection: duckdb.DuckDBPyConnection) -> None:
    """Answer each line of statements with the error that one of them made, or null."""
    for line in questions:
        error = None
        try:
            for statement in json.loads(line):
                connection.execute(statement)
        except duckdb.Error as failed:
            error = str(failed)
        answers.write(json.dumps(error) + "\n")
        answers.flush()


if __name__ == "__main__":
    with duckdb.connect(**json.loads(sys.argv[1])) as opened:
        serve(sys.stdin, sys.stdout, opened)
