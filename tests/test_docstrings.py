"""Every docstring tells more than the name above it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("transforms", "storage", "expectations", "orchestration", "bench")
FILLERS = {
    *(
        "a",
        "an",
        "and",
        "are",
        "as",
        "be",
        "by",
        "for",
        "from",
        "get",
        "gets",
        "in",
        "is",
        "it",
        "its",
        "of",
        "on",
    ),
    *("or", "return", "returns", "that", "the", "this", "to"),
}
PLACEHOLDER = re.compile(r"\b(todo|fixme|xxx|tbd|docstring|placeholder|lorem ipsum)\b", re.IGNORECASE)

Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def documented(source: str, module: str) -> Iterator[tuple[str, str]]:
    """Yield name and docstring of a module and of the classes and functions in it that have one."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, Documented) and (docstring := ast.get_docstring(node)):
            yield module if isinstance(node, ast.Module) else node.name, docstring


def says_nothing(name: str, docstring: str) -> bool:
    """Return whether a docstring is a placeholder, or all its words are those of the name."""
    words = {_stem(word) for word in re.findall(r"[a-z]+", docstring.lower()) if word not in FILLERS}
    of_the_name = {_stem(word) for word in re.findall(r"[A-Z]?[a-z]+", name)}
    return bool(PLACEHOLDER.search(docstring)) or words <= of_the_name


def _stem(word: str) -> str:
    """Return a word without the plural's or the verb's s."""
    return word.lower().removesuffix("s")


@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_tell_more_than_the_name(package: str) -> None:
    """No docstring of a package is a placeholder or the name in other order."""
    empty = [
        f"{file.relative_to(ROOT)}: {name}: {docstring}"
        for file in sorted((ROOT / package).rglob("*.py"))
        for name, docstring in documented(file.read_text(), file.stem)
        if says_nothing(name, docstring)
    ]

    assert empty == []


@pytest.mark.parametrize(
    ("name", "docstring", "expected"),
    [
        ("read_records", "Read the records.", True),
        ("LakeBusy", "The lake is busy", True),
        ("merge", "TODO", True),
        ("merge", "Merge, placeholder for now.", True),
        ("read_records", "Read the records of a batch, in the order of their files.", False),
    ],
)
def test_docstring_that_says_nothing_is_recognised(name: str, docstring: str, expected: bool) -> None:
    """The rule itself finds repeated names and placeholders, and lets a sentence with content pass."""
    assert says_nothing(name, docstring) is expected
