"""Holds a document while it is checked: its values, and the problems found so far."""

from collections.abc import Iterator
from typing import Any

from lakejoin.orchestration.config.document import Document, line_of
from lakejoin.orchestration.config.problems import KeyPath, Problem


class Reading:
    """Collects problems, and gives out only values in which none was found.

    So a check sees only sound values, and each mistake gives one message.
    """

    def __init__(self, document: Document) -> None:
        """Start with what the YAML itself had wrong."""
        self._document = document
        self.problems: list[Problem] = list(document.problems)
        self._broken: set[KeyPath] = set(document.unread)

    def refuse(self, path: KeyPath, message: str, *, at_key: bool = False) -> None:
        """Note a mistake, on the line of the value or, `at_key`, of its key.

        A missing value is reported on the line of the mapping that lacks it.
        """
        line = self._document.key_lines.get(path) if at_key else None
        problem = Problem(self._document.name, line or line_of(self._document.lines, path), path, message)
        if not any(path[: len(unread)] == unread for unread in self._document.unread):
            self._broken.add(path)
            self.problems.append(problem)

    def value(self, *path: str | int) -> Any:
        """The value at a path; None where it is absent, or a problem lies in it."""
        broken = any(place[: len(path)] == path for place in self._broken)
        return None if broken else self.raw(*path)

    def raw(self, *path: str | int) -> Any:
        """The value at a path, problems or not; None where it is absent."""
        value = self._document.data
        for step in path:
            if isinstance(value, dict):
                value = value.get(step)
            elif isinstance(value, tuple) and isinstance(step, int) and step < len(value):
                value = value[step]
            else:
                return None
        return value

    def names(self, *path: str | int) -> Iterator[str]:
        """The keys of a mapping, none where there is no mapping."""
        value = self.raw(*path)
        yield from value if isinstance(value, dict) else ()
