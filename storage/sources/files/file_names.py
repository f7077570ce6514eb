"""Says by which name a lake knows a file, and which files of a source are passed over.

A record's position holds the name, and the text of names orders files wherever positions are compared: in Python, in
Spark, in stores. So what is to order files in another way than their names do has to stand in the name: the hour before
it, and numbers in a form whose text is ordered as their values are.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import date
from itertools import pairwise
from typing import Literal, TypeVar

from lakejoin.storage.errors import SourceRefused
from lakejoin.storage.sources.files.path_patterns import FilePattern, Numbers

FileOrder = Literal["name", "number"]
"""Whether files of a day follow each other as the texts of their names do, or as the numbers within these."""
Dated = tuple[date | None, str]
"""Day and name of a file."""
File = TypeVar("File")

_DIGITS = re.compile("[0-9]+")
_BESIDE = re.compile(r"(.+\+[0-9]+\+[0-9]+)\.(?:keys|headers)\.(.+)")


def known_as(name: str, pattern: FilePattern, numbers: Numbers, order: FileOrder | None) -> str:
    """Return the name by which a lake knows a file.

    `name`: relative to the pattern's directory. `numbers`: as the pattern matched it. Raises `SourceRefused` for an
    hour that is none.
    """
    written = by_number(name, pattern.field_spans(name)) if order == "number" else name
    hour = numbers.get("hour")
    if hour is None:
        return written
    if hour not in range(24):
        raise SourceRefused(
            f"{name}: {hour} is no hour from 0 to 23, which {{hour}} stands for; rename the file"
        )
    return f"{hour:02}/{written}"


def by_number(name: str, fixed: Collection[tuple[int, int]] = ()) -> str:
    """Write the numbers in a name so that texts are ordered as they are: a colon for each digit but the first.

    A colon stands behind all digits, and Hadoop reads no file that has one in its name. `fixed`: beginnings and ends of
    numbers that stay as they are.

    >>> by_number("part-9.json"), by_number("part-10.json"), by_number("part-0100.json")
    ('part-9.json', 'part-:10.json', 'part-::100.json')
    """

    def written(run: re.Match[str]) -> str:
        if any(start <= run.start() < end for start, end in fixed):
            return run[0]
        digits = run[0].lstrip("0") or "0"
        return ":" * (len(digits) - 1) + digits

    return _DIGITS.sub(written, name)


def out_of_order(known: Callable[[], Iterable[Dated]], files: Collection[Dated]) -> list[tuple[str, str]]:
    """Return neighbours by name that are the other way round by number, if a new file brought the first of them.

    Only files whose names differ in nothing but numbers are compared: in others, such as those with random identifiers,
    digits are no numbers. `known`: gives those that were read; of days that `files` have none of nothing is kept.
    """
    days = {day for day, _ in files}
    read = {file for file in known() if file[0] in days}
    found = list(_swapped([*read, *(file for file in files if file not in read)]))
    return [] if found and any(True for _ in _swapped(known())) else found


def without_keys(files: Iterable[File], path: Callable[[File], str]) -> Iterator[File]:
    """Leave out files of keys and headers that Kafka Connect wrote beside those of the values.

    `files`: one directory after the other; of names such as it gives those of a directory are kept.
    """
    directory, paths, beside = "", set[str](), list[tuple[File, str]]()
    for file in files:
        name = path(file)
        if "+" not in name:
            yield file
            continue
        if not name.startswith(f"{directory}/") or "/" in name[len(directory) + 1 :]:
            yield from (waiting for waiting, value in beside if value not in paths)
            directory, paths, beside = name.rpartition("/")[0], set(), []
        paths.add(name)
        if found := _BESIDE.fullmatch(name):
            beside.append((file, f"{found[1]}.{found[2]}"))
        else:
            yield file
    yield from (waiting for waiting, value in beside if value not in paths)


def _swapped(files: Iterable[Dated]) -> Iterator[tuple[str, str]]:
    alike: dict[tuple[date | None, str], list[str]] = {}
    for day, name in files:
        alike.setdefault((day, _DIGITS.sub("0", name)), []).append(name)
    for names in alike.values():
        for one, other in pairwise(sorted(names)):
            if by_number(one) > by_number(other):
                yield one, other
