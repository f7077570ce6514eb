"""Splits a range of versions where the columns of the Delta table change: Delta reads no feed across such a place.

Each part is read with the columns that its versions have. They come from the metadata in the commits: a commit without
metadata has the columns of the one before (Delta protocol, "Change Metadata").
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from deltalake import DeltaTable

from lakejoin.storage.delta_log.actions import Action, LogActions, of_kind, opening, row_files
from lakejoin.storage.errors import SourceTrimmed
from lakejoin.storage.filesystem import quoted_uri

_MAPPING = "delta.columnMapping.mode"


@dataclass(frozen=True)
class Span:
    """Versions after one up to another, all with the columns of the last."""

    after: int
    through: int
    anew: bool = False
    """It is one version that took every row there was, and has other columns: no row of it is read by the old ones."""
    replaces: bool = False
    """In some version of it rows went and others came, so one may have come as it went."""


def spans(path: str, after: int, through: int) -> list[Span]:
    """Take a range of versions apart. Raises `SourceTrimmed` for a version that is gone, `SourceError`."""
    log = LogActions(path)
    found: list[Span] = []
    columns: Any = None
    for number in range(after + 1, through + 1):
        actions = log.of(number)
        if actions is None:
            raise SourceTrimmed(
                f"{path}: the change feed was trimmed: version {number} of the log was removed after the batch was "
                "planned. Run again: what can be done is told before a batch begins."
            )
        before, columns = columns, _columns(actions) or columns
        span = Span(number - 1, number, _is_anew(path, actions, number), replaces=_replaces(actions))
        if found and before == columns and not (span.anew or found[-1].anew):
            first = found.pop()
            span = replace(first, through=number, replaces=first.replaces or span.replaces)
        found.append(span)
    return found


def reads_state_before(actions: Sequence[Action]) -> bool:
    """Whether what a version took may have had other columns, so that the state before it is looked at."""
    return _columns(actions) is not None and _replaces(actions) and not any(of_kind(actions, "cdc"))


def _columns(actions: Sequence[Action]) -> Any:
    """What a commit says of the columns; None if nothing."""
    found = None
    for stated in of_kind(actions, "metaData"):
        mapping = (stated.get("configuration") or {}).get(_MAPPING)
        found = (stated["schemaString"], stated.get("partitionColumns") or [], mapping)
    return found


def _replaces(actions: Sequence[Action]) -> bool:
    _, removed = row_files(actions)
    return bool(removed) or any(of_kind(actions, "cdc"))


def _is_anew(path: str, actions: Sequence[Action], number: int) -> bool:
    # where a file stays it can be read with the new columns, and so can those that go
    if not reads_state_before(actions):
        return False
    with opening(path):
        live = len(DeltaTable(quoted_uri(path), version=number - 1).file_uris())
    _, removed = row_files(actions)
    return len(removed) == live
