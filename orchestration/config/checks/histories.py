"""Checks that a history by event time has sides that say what was true when."""

from lakejoin.orchestration.config.checked_document import Reading
from lakejoin.orchestration.config.problems import KeyPath

_OTHERWISE = "remove as_of: the history then says what the result was after each batch"


def check_history_of_join(reading: Reading, join: str) -> None:
    """Note the sides of a join for which its history cannot go by event time."""
    if reading.value("joins", join, "history", "as_of") != "event_time":
        return
    sides: list[KeyPath] = [("joins", join, side) for side in ("left", "right")]
    sides += [("joins", join, "rights", side, "table") for side in reading.names("joins", join, "rights")]
    for path in sides:
        name = reading.value(*path)
        if mistake := None if name is None else _mistake(reading, name):
            reading.refuse(("joins", join, "history", "as_of"), f"{mistake}, or {_OTHERWISE}")
            return


def check_history_of_groups(reading: Reading, group: str) -> None:
    """Note a history of groups that is to go by event time."""
    if reading.value("groups", group, "history", "as_of") == "event_time":
        message = f"groups have no history by event time, only joins of versioned tables; {_OTHERWISE}"
        reading.refuse(("groups", group, "history", "as_of"), message)


def _mistake(reading: Reading, name: str) -> str | None:
    """What keeps a side from telling what was true when; None where nothing does."""
    expected = "event_time needs `versioned` tables on all sides"
    if name in reading.names("tables"):
        if reading.raw("tables", name, "versioned") is not None:
            return None
        return f"{expected}, and '{name}' is not; declare `versioned` on the table"
    for kind, what in (("joins", "a join"), ("groups", "groups")):
        if name in reading.names(kind):
            return f"{expected}, and '{name}' is {what}; join tables only"
    return None
