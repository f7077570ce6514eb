"""What brings a damaged table back, by where it lies in its lake: what can be computed anew, and what cannot."""

from storage.errors import LakeInconsistent

REPAIRED = ("rows", "versions")
"""Tables of a declared table that are folded from its changes."""


def remedy(table: str) -> str:
    """Return the way on, as a sentence. `table`: a path, or the name below the lake."""
    match table.rstrip("/").split("/")[-3:]:
        case ["joins", name, _]:
            return _repair(name, "the log of changes unless it is a join of a stream")
        case ["tables", name, kind] if kind in REPAIRED:
            return _repair(name, "its log of changes")
    return "Restore it from a copy, or load the sources anew into a new lake."


def file_lost(table: str, name: str, found: str = "") -> LakeInconsistent:
    """Return the error for a data file that cannot be read. `found`: what is the matter with it, if known."""
    why = f" ({found})" if found else ""
    return LakeInconsistent(
        f"{table}: {name} is gone or damaged{why}, which the table's log names; expected the file as it was written. A "
        f"vacuum with another retention, a broken disk or somebody's hand removed it. {remedy(table)}"
    )


def _repair(name: str, source: str) -> str:
    return f"Run `lakejoin repair FILE {name}`, which makes it anew from {source}, or restore it from a copy."
