"""Random source files: those of each day, and their records once more."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from random import Random

from properties.scenarios import DAYS, Change, Side
from properties.trial import FIRST_DAY
from soak.actions import FileName, Write
from soak.model import ADDED, LONGEST

_ADDED_VALUES = ("p", "q", None)


class SourceFiles:
    """Makes files, and knows which there are and what they have. All of them as they are when they are whole."""

    def __init__(self, random: Random, sequences: Sequence[Sequence[Change]], added: Side) -> None:
        """`added`: the side whose records have a new column."""
        self._random, self._sequences, self._added = random, sequences, added
        self._files: dict[FileName, Write] = {}

    def any(self) -> Write:
        """One of those that there are."""
        found = sorted(self._files.values(), key=lambda file: (file.side, file.name))
        return self._random.choice([file for file in found if len(file.lines) > 1])

    def of_day(self, side: Side, day: int) -> Write:
        """A file of a day with the records of all sequences; now and then in no order at all."""
        lines = [
            (case, self._as_sent(change))
            for case, changes in enumerate(self._sequences)
            for change in changes
            if (change.side, change.day) == (side, day)
        ]
        if self._random.random() < 0.3:
            self._random.shuffle(lines)
        return self._written(Write("day", side, day, f"{FIRST_DAY + timedelta(days=day)}.jsonl", lines))

    def _as_sent(self, change: Change) -> Change:
        """The change as the source sends it: perhaps with a column that is not declared, perhaps much too long."""
        if change.value is None:
            return change
        value = dict(change.value)
        if change.side == self._added:
            value[ADDED] = self._random.choice(_ADDED_VALUES)
        if self._random.random() < 0.02:
            value["v"] = "x" * LONGEST
        return replace(change, value=value)

    def again(self, file: Write) -> Write:
        """Some of a file's records in another one, of the same day or of one behind all others."""
        lines = [line for line in file.lines if self._random.random() < 0.6]
        day = self._random.choice([file.day, DAYS])
        name = f"{FIRST_DAY + timedelta(days=day)}-{len(self._files)}.jsonl"
        return self._written(replace(file, kind="again", day=day, lines=lines, name=name))

    def _written(self, file: Write) -> Write:
        self._files[file.side, file.name] = file
        return file
