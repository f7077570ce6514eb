"""Holds what is known of a row: sentences, each with what it follows from, and the values behind it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

Values = Mapping[str, Any]
"""Plain values: texts, numbers, lists and mappings of these."""


def shown(text: str | None) -> str:
    """Return the text of a value as sentences have it."""
    return "null" if text is None else text


@dataclass(frozen=True)
class Finding:
    """A sentence, with the values that it says and what it follows from."""

    says: str
    values: Values = field(default_factory=dict)
    because: tuple["Finding", ...] = ()

    def lines(self, depth: int = 0) -> Iterator[tuple[int, str]]:
        """Yield each sentence with how deep it stands."""
        yield depth, self.says
        for finding in self.because:
            yield from finding.lines(depth + 1)

    def plain(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        found: dict[str, Any] = {"says": self.says}
        if self.values:
            found["values"] = dict(self.values)
        if self.because:
            found["because"] = [finding.plain() for finding in self.because]
        return found


@dataclass(frozen=True)
class Explanation:
    """Why a row is as it is."""

    name: str
    """Of the result, table or stream."""
    key: Sequence[str | None]
    """Values of its key, as text."""
    batch: int
    """The batch after which it is so."""
    found: bool
    """Whether there is such a row."""
    answer: str
    """The shortest answer."""
    findings: tuple[Finding, ...]
    """What it follows from, the most telling first."""
    next: tuple[str, ...] = ()
    """What could change it next."""
    columns: Mapping[str, Finding] = field(default_factory=dict)
    """Of a row that is there: each column with where its value comes from."""

    @property
    def called(self) -> str:
        """The row, as sentences name it."""
        return f"{self.name} {', '.join(map(shown, self.key))}"

    def lines(self) -> Iterator[str]:
        """Yield it as indented lines."""
        yield f"{self.answer}."
        yield f"As batch {self.batch} left it:"
        for finding in self.findings:
            for depth, text in finding.lines():
                yield f"{'  ' * (depth + 1)}{text}"
        if self.next:
            yield f"Next, it could be changed by: {'; '.join(self.next)}."

    def of_column(self, column: str) -> "Explanation":
        """Return the same of one column alone. Raises `KeyError` for one that the row has not."""
        return replace(self, findings=(self.columns[column],))

    def plain(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "name": self.name,
            "key": list(self.key),
            "batch": self.batch,
            "found": self.found,
            "answer": self.answer,
            "findings": [finding.plain() for finding in self.findings],
            "next": list(self.next),
        }
