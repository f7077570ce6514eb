"""What is kept as JSON: results under their date and commit, and beside a kept lake where it comes from."""

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from lakejoin.orchestration.cli.terminal import say

RESULTS = Path(__file__).resolve().parents[1] / "results"


def write_result(result: Mapping[str, Any], file: Path | None) -> None:
    """Write what was measured, by default under its date and commit among the other results."""
    date = datetime.fromisoformat(result["date"])
    path = file or RESULTS / f"{date:%Y-%m-%dT%H%M%S}-{result['commit']}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write(result, path)
    say(f"written: {path}")


def kept_file(lake: Path) -> Path:
    """Where it is kept when and with which commit a kept lake was made."""
    return lake / "kept.json"


def write(values: Mapping[str, Any], file: Path) -> None:
    """Write values as people can read them, too."""
    file.write_text(json.dumps(values, indent=1) + "\n")


def read(file: Path) -> Any:
    """What a file of JSON holds; None where there is no file."""
    return json.loads(file.read_text()) if file.is_file() else None
