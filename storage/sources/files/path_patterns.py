"""Splits a path with fields and wildcards into a fixed directory and the pattern below it.

`*` and `?` stand for characters of a name, `[…]` for one of a set, `**` for any number of directories. `{date}` stands
for a day as YYYY-MM-DD, `{year}` for four digits, `{month}`, `{day}` and `{hour}` for one or two, or for two beside
another digit. A field is the same wherever it stands in the path. `[*]`, `[?]`, `[[]` and `[{]` stand for the
sign itself, and leave a directory fixed.
"""

import fnmatch
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property, lru_cache

FIELDS = ("date", "year", "month", "day", "hour")
Numbers = Mapping[str, int]
"""What fields stand for in a name, by `year`, `month`, `day`, `hour`; of `{date}` its three numbers."""

_FIELD = re.compile(r"\{(" + "|".join(FIELDS) + r")\}")
_PIECE = re.compile(_FIELD.pattern.replace("(", "(?:") + r"|\*|\?|\[!?\]?[^\]]*\]|.", re.DOTALL)
_FIXED = re.compile(r"\[([*?\[{])\]")
_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_OF_DAY = ("year", "month", "day")


@dataclass(frozen=True)
class FilePattern:
    """A path whose first part is fixed and whose rest may match many files."""

    directory: str
    """The fixed directory; names of files are relative to it."""
    parts: tuple[str, ...]
    """Names below it, one for each level, with wildcards; none if the path is a file or directory itself."""

    @classmethod
    def parse(cls, path: str) -> "FilePattern":
        """Split a path before its first part with a wildcard or field."""
        parts = path.split("/")
        wild = next((index for index, part in enumerate(parts) if is_wild(part)), None)
        if wild is None:
            return cls(plain(path).rstrip("/"), ())
        below = [*parts[wild:], "*"] if parts[-1] == "**" else parts[wild:]
        return cls(plain("/".join(parts[:wild])) or "/", tuple(below))

    def match(self, name: str) -> Numbers | None:
        """Match a whole name, relative to the directory, and return what its fields stand for."""
        return _numbers(self._regex.fullmatch(name))

    def field_spans(self, name: str) -> list[tuple[int, int]]:
        """Return where fields begin and end in a name that matches."""
        match = self._regex.fullmatch(name)
        return [] if match is None else [match.span(group) for group in match.groupdict()]

    @cached_property
    def _regex(self) -> re.Pattern[str]:
        *directories, file = self.parts
        levels = ["**" if part == "**" else f"{part}/" for part in directories]
        return _compiled(*levels, file)


def is_wild(part: str) -> bool:
    """Tell whether a part of a path may match more than itself."""
    rest = _FIXED.sub("", part)
    return any(sign in rest for sign in ("*", "?", "[")) or _FIELD.search(rest) is not None


def has_day(path: str) -> bool:
    """Tell whether the files of a path are of a day each: by `{date}`, or by year, month and day."""
    found = fields_in(path)
    return "date" in found or found.issuperset(_OF_DAY)


def has_hour(path: str) -> bool:
    """Tell whether the files of a path are of an hour each."""
    return "hour" in fields_in(path)


def fields_in(path: str) -> set[str]:
    """Return the names of the fields in a path."""
    return set(_FIELD.findall(_FIXED.sub("", path)))


def fixed(directory: str) -> str:
    """Return the pattern that only this directory matches, whatever signs its path holds."""
    return re.sub(r"([*?\[{])", r"[\1]", directory)


def plain(path: str) -> str:
    """Return a path with the signs that stand for themselves, as `fixed` wrote them, as they are."""
    return _FIXED.sub(r"\1", path)


def match_part(part: str, name: str, known: Numbers) -> Numbers | None:
    """Match one level of a pattern, other than `**`, with a name below directories that `known` is said by.

    Returns what the fields of all these levels stand for; None where the name does not match, or contradicts.
    """
    match = _compiled(part).fullmatch(name)
    if match is None or not match.re.groups:
        return known if match else None
    found = _numbers(match)
    if found is None or any(known.get(key, number) != number for key, number in found.items()):
        return None
    return {**known, **found}


def is_beyond(numbers: Numbers, first: date | None, last: date | None) -> bool:
    """Whether all days that these numbers leave open lie before a first day or behind a last one."""
    if "year" not in numbers:
        return False
    earliest, latest = (tuple(_filled(numbers, number)) for number in (0, 99))
    return (first is not None and latest < _triple(first)) or (last is not None and earliest > _triple(last))


def day_of(numbers: Numbers) -> date | None:
    """Return the day that numbers stand for; None without one. Raises `ValueError` for what is no day."""
    year, month, day = numbers.get("year"), numbers.get("month"), numbers.get("day")
    return None if year is None or month is None or day is None else _day(year, month, day)


@lru_cache(maxsize=1000)
def _day(year: int, month: int, day: int) -> date:
    try:
        return date(year, month, day)
    except ValueError as error:
        raise ValueError(f"{year:04}-{month:02}-{day:02} is no day") from error


def _filled(numbers: Numbers, unknown: int) -> Iterator[int]:
    """Year, month and day; what stands behind one that is not known is not known, either."""
    for index, key in enumerate(_OF_DAY):
        yield numbers.get(key, unknown) if numbers.keys() >= set(_OF_DAY[:index]) else unknown


def _triple(day: date) -> tuple[int, int, int]:
    return day.year, day.month, day.day


def _numbers(match: re.Match[str] | None) -> Numbers | None:
    """What the groups of a match say; None where they contradict each other."""
    found: dict[str, int] = {}
    for group, text in match.groupdict().items() if match is not None else ():
        name = group.rstrip("0123456789_")
        keys = _OF_DAY if name == "date" else (name,)
        for key, digits in zip(keys, text.split("-"), strict=True):
            if found.setdefault(key, int(digits)) != int(digits):
                return None
    return None if match is None else found


@lru_cache(maxsize=1000)
def _compiled(*levels: str) -> re.Pattern[str]:
    """The regular expression of levels of a pattern, of which `**` stands for any number of directories."""
    written, seen = "", dict[str, int]()
    for level in levels:
        written += "(?:[^/]+/)*" if level == "**" else _regex(level, seen)
    return re.compile(written)


def _regex(level: str, seen: dict[str, int]) -> str:
    """The regular expression of a level; `seen` counts the fields before it."""
    pieces = _PIECE.findall(level)
    around = ["", *pieces, ""]
    return "".join(
        _field_regex(found[1], seen, before=before, behind=behind)
        if (found := _FIELD.fullmatch(piece))
        else _piece_regex(piece)
        for before, piece, behind in zip(around, pieces, around[2:], strict=False)
    )


def _field_regex(name: str, seen: dict[str, int], *, before: str, behind: str) -> str:
    count = seen[name] = seen.get(name, 0) + 1
    if name in {"date", "year"} and count > 1:
        return f"(?P={name}_1)"
    if name == "date":
        return f"(?P<date_{count}>{_DATE})"
    left, right = map(_may_be_digit, (before, behind))
    digits = "[0-9]{4}" if name == "year" else "[0-9]{2}" if left or right else "[0-9]{1,2}"
    # a wildcard before it would take all digits but one
    return f"(?P<{name}_{count}>{'' if left else '(?<![0-9])'}{digits})"


def _may_be_digit(piece: str) -> bool:
    """Whether a piece beside a field is a digit, or a field, too."""
    if _FIELD.fullmatch(piece):
        return True
    return piece not in {"", "*", "?"} and any(
        re.fullmatch(_piece_regex(piece), digit) for digit in "0123456789"
    )


def _piece_regex(piece: str) -> str:
    match piece:
        case "*":
            return "[^/]*"
        case "?":
            return "[^/]"
    if len(piece) == 1:
        return re.escape(piece)
    return fnmatch.translate(piece)[:-2]  # without the end of text that it puts behind
