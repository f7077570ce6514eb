"""Finds commits to a lake's tables that are not the lake's own: an UPDATE, a RESTORE or an overwrite by hand.

Each commit of ours carries a transaction identifier that begins with the lake's identity. What others commit is
accepted if it leaves the rows as they are (OPTIMIZE, VACUUM, settings) or was taken back. Nothing may be built on
anything else.
"""

from collections.abc import Sequence

from deltalake.fs import DeltaStorageHandler
from pyarrow import fs

from lakejoin.storage.delta_log.actions import Action, actions_of, of_kind
from lakejoin.storage.delta_log.live_files import live_files
from lakejoin.storage.delta_log.snapshot import reading_table
from lakejoin.storage.errors import LakeInconsistent, remedy
from lakejoin.storage.filesystem import quoted_uri


def check_own(path: str, pipeline: str, after: int, through: int) -> None:
    """See that no commit of these versions changed rows, unless it is of this lake. Raises `LakeInconsistent`.

    `pipeline`: the lake's identity. `after`: the last version that is known to be right, -1 for none.
    """
    if through <= after:
        return
    foreign = [
        version
        for version, actions in _commits(path, after, through)
        if _changes_rows(actions) and not _is_ours(actions, pipeline)
    ]
    if not foreign or _taken_back(path, foreign[0] - 1, foreign[-1]):
        return
    actions = dict(_commits(path, foreign[0] - 1, foreign[0]))[foreign[0]]
    raise LakeInconsistent(
        f"{path}: version {foreign[0]} ({_operation(actions)}) changed rows and is not of this lake's runs; expected "
        f"only commits of `lakejoin`. Put back the rows of version {foreign[0] - 1} (RESTORE TABLE delta.`{path}` TO "
        f"VERSION AS OF {foreign[0] - 1}), then run again. If they are not there any more: {remedy(path)}"
    )


def _taken_back(path: str, before: int, after: int) -> bool:
    """Whether the table has the same files again, with the same rows of them."""
    return before >= 0 and sorted(live_files(path, before), key=repr) == sorted(
        live_files(path, after), key=repr
    )


def _commits(path: str, after: int, through: int) -> Sequence[tuple[int, list[Action]]]:
    """The actions of versions, as far as the log still has them: older ones are in a checkpoint and were looked at."""
    with reading_table(path):
        system = fs.PyFileSystem(DeltaStorageHandler(quoted_uri(path)))
        return [
            (version, actions)
            for version in range(after + 1, through + 1)
            if (actions := actions_of(system, "_delta_log", version)) is not None
        ]


def _changes_rows(actions: Sequence[Action]) -> bool:
    return any(file["dataChange"] for kind in ("add", "remove") for file in of_kind(actions, kind))


def _is_ours(actions: Sequence[Action], pipeline: str) -> bool:
    return any(identifier["appId"].startswith(f"{pipeline}/") for identifier in of_kind(actions, "txn"))


def _operation(actions: Sequence[Action]) -> str:
    return next((str(info.get("operation")) for info in of_kind(actions, "commitInfo")), "unknown")
