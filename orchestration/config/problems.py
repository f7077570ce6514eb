"""Describes mistakes of a configuration file in one line each: file, line, path, what was found, what is allowed.

All problems of a file travel in one `ConfigurationError`, so that a file is corrected in one go.
"""

import difflib
import json
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from lakejoin.storage.errors import LakejoinError, without_credentials

KeyPath = tuple[str | int, ...]
"""Where a value stands in the file: keys of mappings, indexes of lists."""

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_\-]*")
_SHOWN = 60
_LISTED = 24


@dataclass(frozen=True)
class Problem:
    """A mistake and the line it stands on (from 1); line 0 stands for the file as a whole."""

    file: str
    line: int
    path: KeyPath
    message: str

    def __str__(self) -> str:
        """The problem as `file:line: path: message`, without the parts that are empty."""
        place = f"{self.file}:{self.line}" if self.line else self.file
        return ": ".join(part for part in (place, path_text(self.path), self.message) if part)


class ConfigurationError(LakejoinError):
    """The configuration file cannot be used; `problems` holds every mistake found, in the order of the file.

    Correct the lines it names and run `lakejoin validate` again: nothing has been read or written.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        """Order the problems by line."""
        self.problems = tuple(sorted(problems, key=lambda problem: problem.line))
        super().__init__(*map(str, self.problems))


def path_text(path: KeyPath) -> str:
    """A path as people write it: `tables.flights.key[0]`, unusual names as `columns["tail num"]`.

    >>> path_text(("tables", "flights", "columns", "tail num"))
    'tables.flights.columns["tail num"]'
    """
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif _PLAIN.fullmatch(step):
            text += f".{step}" if text else step
        else:
            text += f"[{json.dumps(step, ensure_ascii=False)}]"
    return text


def is_misspelled(key: str, written: Iterable[str], known: Collection[str]) -> bool:
    """Whether one of the keys that are written is unknown, and nearest to this one."""
    return any(name not in known and nearest(name, known) == key for name in written)


def found(value: Any) -> str:
    """A value of the file in words, shortened where it is long."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"the number {value}"
        case str():
            shown = without_credentials(value)
            return repr(shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "…")
        case dict():
            return "a mapping"
        case _:
            return "a list"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the nearest known name, empty where none is near."""
    close = nearest(name, known)
    return f"; did you mean {close!r}?" if close is not None else ""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like this one, whatever its capitals; None where none is near."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    close = difflib.get_close_matches(name.casefold(), by_folded, n=1)
    return by_folded[close[0]] if close else None


def listed(names: Iterable[str]) -> str:
    """Names separated by commas, the tail of a long list as a count.

    >>> listed(["inner", "left"])
    'inner, left'
    """
    shown = list(names)
    more = len(shown) - _LISTED
    return ", ".join(shown) if more <= 0 else ", ".join(shown[:_LISTED]) + f" and {more} more"
