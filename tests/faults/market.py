"""Every kind of table in one lake: the shop's foreign-key joins, a star and groups, the board's stream and history."""

from collections.abc import Iterable
from pathlib import Path

import yaml

from faults import board, shop
from faults.shop import make_pipeline
from lakejoin.orchestration.config import Pipeline

DAYS = board.DAYS
JOINS = ("inner", "left", "star", "totals", "sums", "cities", "at_time", "known")
STAR = {
    "left": "orders",
    "rights": {
        "customer": {"table": "customers", "foreign_key": ["customer"], "how": "inner", "prefix": "its_"},
        "next": {"table": "orders", "foreign_key": ["amount div 10"], "how": "left"},
    },
    "changelog": True,
    "history": True,
}
"""The left table is one of its right ones."""
GROUPS = {
    "totals": {
        "of": "orders", "by": ["customer"],
        "select": {"n": "count(*)", "ids": "collect(id)", "most": "max(amount)"}, "changelog": True,
    },
    "sums": {
        "of": "orders", "by": ["customer"], "select": {"n": "count(*)", "total": "sum(amount)"},
        "history": True,
    },
    "cities": {
        "of": "left", "by": [{"city": "right_city"}], "select": {"n": "count(*)", "spent": "sum(amount)"},
        "having": "n > 1", "materialized": {"cluster_by": ["n"]},
    },
}  # fmt: skip
"""Of a table, computed and adjusted, and of a join; with a null in what rows have in common."""


def _merged() -> str:
    parts = [yaml.safe_load(part.CONFIGURATION) for part in (shop, board)]
    both = {key: {**parts[0].get(key, {}), **parts[1][key]} for key in ("tables", "streams", "joins")}
    # one with conditions, and columns that are not read, computed, and right keys of its own
    both["joins"]["left"] |= {
        "select": ["* except (right_customer, right_at)", {"dear": "amount > 15"}],
        "where": "id < 6 or right_city is null",
        "history": {"is_current": True, "retention": "30 days", "materialized": {"deletion_vectors": False}},
        "materialized": {
            "partition_by": ["dear"],
            "comment": "what was ordered",
            "comments": {"dear": "or not"},
        },
    }
    both["joins"]["star"] = STAR
    both["tables"]["orders"]["where"] = "amount is null or amount <> 44"
    return yaml.safe_dump({"name": "market", "lake": "./lake", **both, "groups": GROUPS}, sort_keys=False)


CONFIGURATION = _merged()


def make_market(folder: Path, days: Iterable[str] = DAYS) -> Pipeline:
    """Write the pipeline's configuration, and its sources of some days."""
    days = list(days)
    shop.make_shop(folder, days)
    board.write_sources(folder, days)
    return make_pipeline(folder, CONFIGURATION)
