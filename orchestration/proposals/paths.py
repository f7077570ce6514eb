"""Finds the path that stands for some files, with `{date}` for dates and `*` for numbers."""

import re
from collections.abc import Sequence
from os.path import commonpath
from pathlib import PurePosixPath

from lakejoin.storage.sources.files.path_patterns import FIELDS, fixed

_MONTH, _DAY = "(?:0[1-9]|1[0-2])", "(?:0[1-9]|[12][0-9]|3[01])"
_BEFORE, _BEHIND = "(?<![0-9])", "(?![0-9])"
_DATE = re.compile(rf"{_BEFORE}[12][0-9]{{3}}-{_MONTH}-{_DAY}{_BEHIND}")
_APART = re.compile(
    rf"{_BEFORE}(?:19|20)[0-9]{{2}}(?P<one>/month=|/|_|){_MONTH}(?P<two>/day=|/|_|){_DAY}{_BEHIND}"
    r"(?P<hour>/(?:hour=)?[0-2][0-9](?=/))?"
)
_FIELD = re.compile(r"\{(?:" + "|".join(FIELDS) + r")\}")
_NUMBER = re.compile(r"[0-9]+")
_WORD = re.compile(r"[a-z]+")
_OF_NO_TABLE = {"load", "full", "part", "cdc", "changes", "data", "snapshot", "export", "log", "c", "snappy"}
_LOAD = re.compile(r"(?:^|/)LOAD[0-9A-F]{8}\.[^/]*$")
_ENDINGS = re.compile(r"(?:\.[A-Za-z][A-Za-z0-9]{0,8}){1,2}$")


def dated(path: str) -> str:
    """Write the first date in a path, wherever it stands, as the fields of a source's path.

    >>> dated("flights/2013-01-01.jsonl.gz"), dated("dms/orders/20261127-0915.csv")
    ('flights/{date}.jsonl.gz', 'dms/orders/{year}{month}{day}-0915.csv')
    >>> dated("orders/year=2026/month=11/day=27/part-0.json")
    'orders/year={year}/month={month}/day={day}/part-0.json'
    """
    safe = fixed(path)
    if found := _DATE.search(safe):
        return safe.replace(found[0], "{date}")
    if found := _APART.search(safe):
        hour = found["hour"] or ""
        fields = f"{{year}}{found['one']}{{month}}{found['two']}{{day}}{_NUMBER.sub('{hour}', hour)}"
        return safe[: found.start()] + fields + safe[found.end() :]
    return safe


def skeleton(path: str) -> str:
    """Return what files of the same kind have in common: dates are fields, and all other numbers of a name are `*`.

    >>> skeleton("in/topic+0+0000000042.json")
    'in/topic+*+*.json'
    """
    folder, _, name = dated(path).rpartition("/")
    named = "".join(
        piece if _FIELD.fullmatch(piece) else _NUMBER.sub("*", piece)
        for piece in re.split(f"({_FIELD.pattern})", name.removesuffix(ending(name)))
    )
    return (
        f"{folder}/{named}{ending(name)}".lstrip("/")
        if not path.startswith("/")
        else f"{folder}/{named}{ending(name)}"
    )


def folder_of(path: str) -> str:
    """Return the folder of a file without the levels that are dates."""
    levels = dated(path).split("/")[:-1]
    return "/".join(level for level in levels if not _FIELD.search(level)) or (
        "/" if path.startswith("/") else ""
    )


def ending(name: str) -> str:
    """Return the ending of a name with that of its compression: `.jsonl.gz`."""
    found = _ENDINGS.search(name)
    return found[0] if found else ""


def words(path: str) -> frozenset[str]:
    """Return what the name of a file says of its table: its words but those that names of loads and parts have."""
    name = _FIELD.sub("", skeleton(path).rpartition("/")[2])
    found = _WORD.findall(name.removesuffix(ending(name)).lower())
    return frozenset(word for word in found if word not in _OF_NO_TABLE and not re.fullmatch("[a-f]+", word))


def pattern_of(paths: Sequence[str]) -> str:
    """Return the narrowest path that stands for all of these files."""
    alike = {skeleton(path) for path in paths}
    if not any(map(is_load, paths)):
        if len(exact := {dated(path) for path in paths}) == 1 and words(paths[0]):
            return exact.pop()
        if len(alike) == 1:
            return alike.pop()
    end = _common_ending(paths)
    if len(folders := {dated(path).rpartition("/")[0] for path in paths}) == 1:
        return f"{folders.pop()}/*{end}".lstrip("/")
    top = commonpath([fixed(path).rpartition("/")[0] for path in paths])
    return "/".join([*([top] if top else []), "**", f"*{end}"])


def is_load(path: str) -> bool:
    """Tell whether a file has the name that DMS gives one of a full load: others will have other names."""
    return _LOAD.search(path) is not None


def name_in(path: str) -> str:
    """Return a name for what lies at a path: that of its files, else of the nearest folder that has one."""
    for level in reversed(PurePosixPath(path).parts):
        plain = _FIELD.sub("", level.removesuffix(ending(level)))
        found = re.findall("[A-Za-z]+", plain)
        found = [
            word for word in found if word.lower() not in {*_OF_NO_TABLE, "year", "month", "day", "hour"}
        ]
        if found:
            return "_".join(found).lower()
    return "table"


def _common_ending(paths: Sequence[str]) -> str:
    ends = {ending(path) for path in paths}
    return ends.pop() if len(ends) == 1 else ""
