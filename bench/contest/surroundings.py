"""Where and with what a race was run: machine, versions, commit."""

import argparse
import os
import platform
import shutil
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from bench.contest.jvm import java_version
from bench.tpch.answers import change_file

_ROOT = Path(__file__).resolve().parents[2]
_PACKAGES = ("lakejoin", "pyspark", "delta-spark", "deltalake", "duckdb", "pyarrow", "tpchgen-cli")


def machine() -> dict[str, Any]:
    """Return what the machine has, and how busy it was when the race began."""
    return {
        "cores": len(os.sched_getaffinity(0)),
        "processor": _processor(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": platform.platform(),
        "load_average": [round(load, 2) for load in os.getloadavg()],
    }


def versions(spark: SparkSession) -> dict[str, str]:
    """Return the versions of what takes part."""
    found = {name: version(name) for name in _PACKAGES}
    return {"python": platform.python_version(), "java": java_version(spark), **found}


def heading(options: argparse.Namespace) -> dict[str, Any]:
    """Return what every result has: what it is a result of, when, and where it was measured."""
    return {
        "recipe": options.recipe,
        "date": now(),
        "commit": commit(),
        "machine": machine(),
        "master": options.master,
        "driver_memory": options.driver_memory,
    }


def now() -> str:
    """Return the time of the clock, as results keep it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def commit() -> str:
    """Return the commit of the work tree, with `-dirty` where it was changed since; `unknown` without git."""
    git = shutil.which("git")
    if git is None:
        return "unknown"
    described = subprocess.run(
        [git, "-C", _ROOT, "describe", "--always", "--abbrev=8", "--dirty", "--match", ""],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return described.stdout.strip() or "unknown"


def rows(workload: Path, batches: int) -> dict[str, list[int]]:
    """Return how many rows the files of each side have: the base, then batch after batch."""
    return {
        side: [pq.read_metadata(change_file(workload, side, batch)).num_rows for batch in range(batches + 1)]
        for side in ("left", "right")
    }


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "unknown")
