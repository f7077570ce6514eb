"""Reads the list of mutants: changes of one line that each break a promise, and the tests that must notice.

What each entry says stands at the head of mutants.yaml.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

import yaml

LIST = Path(__file__).with_name("mutants.yaml")


class WrongEntry(Exception):
    """An entry that does not fit the tree: its text is not there, or its change is not one line."""


@dataclass(frozen=True)
class Mutant:
    """One change that breaks a promise."""

    number: int
    promise: str
    """What is so, and with the change no longer."""
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    """Each must fail; without the parameters of its cases, one of these that fails is enough."""

    @property
    def name(self) -> str:
        """How a run tells it, and what a choice is matched with."""
        return f"{self.number:>3}  {self.promise}"

    def is_asked(self, word: str) -> bool:
        """Whether a word of a choice is its number, or stands in its promise, its file or its tests."""
        if word.isdigit():
            return int(word) == self.number
        return any(word.lower() in text.lower() for text in (self.promise, self.file, *self.tests))

    def applied(self, text: str) -> str:
        """Return the text of its file with the change. Raises `WrongEntry`."""
        if (found := text.count(self.old)) != 1:
            raise WrongEntry(f"{self.file} has the old text {found} times; expected it once")
        changed = text.replace(self.old, self.new)
        if (lines := _lines_changed(text, changed)) != 1:
            raise WrongEntry(f"{lines} lines of {self.file} are changed; expected one")
        return changed


def read_mutants(path: Path = LIST) -> Sequence[Mutant]:
    """Return the list in its order. Raises `TypeError` for an entry with other members."""
    entries = [entry for group in yaml.safe_load(path.read_text()).values() for entry in group]
    return [
        Mutant(number=number, tests=tuple([tests] if isinstance(tests, str) else tests), **rest)
        for number, entry in enumerate(entries, start=1)
        for tests, rest in [(entry["test"], {name: text for name, text in entry.items() if name != "test"})]
    ]


def _lines_changed(before: str, after: str) -> int:
    lines = SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
    return sum(max(b - a, d - c) for kind, a, b, c, d in lines.get_opcodes() if kind != "equal")
