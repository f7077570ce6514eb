"""Which states a log still tells, by the names of its entries."""

import pytest

from lakejoin.storage.sources.change_data_feed.feed_log import tells_state

UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"


def commits(*versions: int) -> list[str]:
    """Names of commits."""
    return [f"{version:020d}.json" for version in versions]


def checkpoint(version: int, rest: str = "parquet") -> str:
    """Name of a checkpoint, or of a part of one."""
    return f"{version:020d}.checkpoint.{rest}"


PARTS = [checkpoint(3, f"{part:010d}.0000000002.parquet") for part in (1, 2)]


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (commits(0, 1, 2, 3, 4), {0, 1, 2, 3, 4}),
        (commits(1, 2, 3, 4), set()),
        ([*commits(3, 4), checkpoint(3)], {3, 4}),
        ([*commits(0, 2, 3, 4), checkpoint(3)], {0, 3, 4}),
        ([*commits(3, 4), *PARTS], {3, 4}),
        ([*commits(3, 4), PARTS[0]], set()),
        ([*commits(3, 4), checkpoint(3, f"{UUID}.json")], {3, 4}),
        ([*commits(3, 4), checkpoint(3, f"{UUID}.parquet"), checkpoint(3, f"{UUID}.crc")], {3, 4}),
        ([*commits(3, 4), checkpoint(5), "_last_checkpoint"], set()),
    ],
    ids=["all commits", "no beginning", "checkpoint", "gap", "all parts", "a part", "v2 json", "v2", "later"],
)
def test_state_is_told_by_a_whole_checkpoint_and_every_commit_after_it(
    names: list[str], told: set[int]
) -> None:
    """Or by all commits from the first."""
    assert {version for version in range(5) if tells_state(names, version)} == told
