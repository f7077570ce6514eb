"""Counts the files of a source while they pass, and remembers the newest."""

from collections.abc import Iterable, Iterator
from datetime import date

from lakejoin.storage.sources.files.source_files import FoundFile, by_day_and_name


class Passed(Iterable[FoundFile]):
    """Files as they pass, of which it is kept how many they were, and which is the newest."""

    def __init__(self, files: Iterable[FoundFile]) -> None:
        self._files, self.count = files, 0
        self.newest: FoundFile | None = None

    def __iter__(self) -> Iterator[FoundFile]:
        """Yield them."""
        last = (date.min, "")
        for file in self._files:
            self.count += 1
            place = by_day_and_name(file)
            if place >= last:
                last, self.newest = place, file
            yield file
