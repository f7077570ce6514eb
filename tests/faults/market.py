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
    # one with conditions, and columns that are not read, computed, and right keys of its own
    both["joins"]["left"] |= {
        "select": ["* except (right_customer, right_at)", {"dear": "amount > 15"}],
        "where": "id < 6 or right_city is null",
    }
    both["tables"]["orders"]["where"] = "amount is null or amount <> 44"
    return yaml.safe_dump({"name": "market", "lake": "./lake", **both}, sort_keys=False)


CONFIGURATION = _merged()


def make_market(folder: Path, days: Iterable[str] = DAYS) -> Pipeline:
    """Write the pipeline's configuration, and its sources of some days."""
    days = list(days)
    shop.make_shop(folder, days)
    board.write_sources(folder, days)
    return make_pipeline(folder, CONFIGURATION)
