"""Which states of a Delta table its log still tells: a checkpoint with every commit after it, or all commits.

Whoever cleans a log up removes what is older than its retention, so the commits of a range may be there and the state
that it begins with not (Delta protocol, "Checkpoints", "Metadata Cleanup").
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(
    r"(\d{20})\.checkpoint(?:\.\d{10}\.(?P<parts>\d{10})|\.[0-9a-f-]{36})?\.(?:parquet|json)"
)


def tells_state(names: Iterable[str], version: int) -> bool:
    """Whether the state of a version can be made of a log with entries of these names."""
    names = list(names)
    commits = {int(match[1]) for name in names if (match := _COMMIT.fullmatch(name))}
    begin = max((found for found in _checkpoints(names) if found <= version), default=-1)
    return commits.issuperset(range(begin + 1, version + 1))


def _checkpoints(names: Iterable[str]) -> Iterator[int]:
    """Versions with a checkpoint, of whose parts none is missing."""
    found = Counter((m[1], m["parts"]) for name in names if (m := _CHECKPOINT.fullmatch(name)))
    return (int(version) for (version, parts), count in found.items() if count == int(parts or count))
