"""Every kind of table in one lake: the shop's foreign-key joins, and the board's stream, history and grace."""

from collections.abc import Iterable
from pathlib import Path

import yaml

from faults import board, shop
from faults.shop import make_pipeline
from orchestration.config import Pipeline

DAYS = board.DAYS
JOINS = ("inner", "left", "at_time", "known")


def _merged() -> str:
    parts = [yaml.safe_load(part.CONFIGURATION) for part in (shop, board)]
    both = {key: {**parts[0].get(key, {}), **parts[1][key]} for key in ("tables", "streams", "joins")}
    return yaml.safe_dump({"name": "market", "lake": "./lake", **both}, sort_keys=False)


CONFIGURATION = _merged()


def make_market(folder: Path, days: Iterable[str] = DAYS) -> Pipeline:
    """Write the pipeline's configuration, and its sources of some days."""
    days = list(days)
    shop.make_shop(folder, days)
    board.write_sources(folder, days)
    return make_pipeline(folder, CONFIGURATION)
