"""Splits a path with `{date}` and wildcards into a fixed directory and the pattern below it.

`*` and `?` stand for characters of a name, `[…]` for one of a set, `**` for any number of directories, and `{date}` for
a day as YYYY-MM-DD, the same wherever it stands in the path. `[*]`, `[?]`, `[[]` and `[{]` stand for the sign itself,
and leave a directory fixed.
"""

import fnmatch
import re
from dataclasses import dataclass
from datetime import date
from functools import cached_property

_PIECE = re.compile(r"\{date\}|\*|\?|\[!?\]?[^\]]*\]|.", re.DOTALL)
_FIXED = re.compile(r"\[([*?\[{])\]")
_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"


@dataclass(frozen=True)
class FilePattern:
    """A path whose first part is fixed and whose rest may match many files."""

    directory: str
    """The fixed directory; names of files are relative to it."""
    parts: tuple[str, ...]
    """Names below it, one for each level, with wildcards; none if the path is a file or directory itself."""

    @classmethod
    def parse(cls, path: str) -> "FilePattern":
        """Split a path before its first part with a wildcard."""
        parts = path.split("/")
        wild = next((index for index, part in enumerate(parts) if is_wild(part)), None)
        if wild is None:
            return cls(plain(path).rstrip("/"), ())
        below = [*parts[wild:], "*"] if parts[-1] == "**" else parts[wild:]
        return cls(plain("/".join(parts[:wild])) or "/", tuple(below))

    def match(self, name: str) -> re.Match[str] | None:
        """Match a whole name, relative to the directory; the group `date` holds its day, if there is one."""
        return self._regex.fullmatch(name)

    @cached_property
    def _regex(self) -> re.Pattern[str]:
        *directories, file = self.parts
        pieces = ["(?:[^/]+/)*" if part == "**" else _regex(part) + "/" for part in directories]
        first, *others = ("".join(pieces) + _regex(file)).split(_DATE)
        if not others:
            return re.compile(first)
        return re.compile(f"{first}(?P<date>{_DATE})" + "(?P=date)".join(others))


def is_wild(part: str) -> bool:
    """Tell whether a part of a path may match more than itself."""
    return any(token in _FIXED.sub("", part) for token in ("*", "?", "[", "{date}"))


def fixed(directory: str) -> str:
    """Return the pattern that only this directory matches, whatever signs its path holds."""
    return re.sub(r"([*?\[{])", r"[\1]", directory)


def plain(path: str) -> str:
    """Return a path with the signs that stand for themselves, as `fixed` wrote them, as they are."""
    return _FIXED.sub(r"\1", path)


def part_matches(part: str, name: str) -> bool:
    """Match one level of a pattern, other than `**`, with a name."""
    return re.fullmatch(_regex(part), name) is not None


def is_before(part: str, name: str, day: date) -> bool:
    """Whether the `{date}` of one level of a pattern stands for an earlier day in a name that it matches."""
    found = re.fullmatch(_regex(part).replace(_DATE, f"({_DATE})", 1), name)
    return found is not None and found.re.groups > 0 and found[1] < day.isoformat()


def _regex(part: str) -> str:
    return "".join(_piece_regex(piece) for piece in _PIECE.findall(part))


def _piece_regex(piece: str) -> str:
    match piece:
        case "{date}":
            return _DATE
        case "*":
            return "[^/]*"
        case "?":
            return "[^/]"
    if len(piece) == 1:
        return re.escape(piece)
    return fnmatch.translate(piece)[:-2]  # without the end of text that it puts behind
