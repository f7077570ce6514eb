"""Every docstring tells more than the name above it, and a module's says first what the module does."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("transforms", "storage", "expectations", "orchestration", "bench")
FILLERS = frozenset(
    re.findall(
        r"\w+",
        "a an and are as be by for from get gets in is it its of on or return returns that the this to",
    )
)
PLACEHOLDER = re.compile(r"\b(todo|fixme|xxx|tbd|docstring|placeholder|lorem ipsum)\b", re.IGNORECASE)

NO_VERBS = frozenset(
    re.findall(
        r"\w+",
        """
        actions assets bounds columns commits errors files frames guards its keys messages options paths rows
        rules schemas sessions sides steps stores streams tables texts this types values versions views words
        """,
    )
)
"""Words of this project that end as a verb does and are none: a docstring that begins with one is a list of nouns."""
AFTER_A_NOUN = {"of", "and", "or", "in", "for", "are", "whose"}
"""What follows a noun and hardly a verb, whose object comes next: it tells "Names of columns" from "Names columns"."""

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


def fault_of(docstring: str) -> str | None:
    """Return what is wrong with how the docstring of a module begins; None if it says what the module does."""
    first, second, third, *_ = [*re.findall(r"\S+", docstring), "", "", ""]
    is_pair = second == "and" and _may_be_verb(third)
    if not first.istitle() or not _may_be_verb(first) or (second in AFTER_A_NOUN and not is_pair):
        return "does not begin with a verb in the third person"
    if not re.search(r"[^\s.]\.(\s|$)", "\n".join(docstring.partition("\n\n")[0].splitlines()[:2])):
        return "has no sentence that ends on its first two lines"
    return None


def _may_be_verb(word: str) -> bool:
    """Return whether a word ends as a verb in the third person does and is not known as a noun."""
    return re.fullmatch(r"[a-z]*[a-rt-z]s", word.lower()) is not None and word.lower() not in NO_VERBS


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


@pytest.mark.parametrize("package", PACKAGES[:4])
def test_docstring_of_each_module_says_what_the_module_does(package: str) -> None:
    """It has one, which begins with a verb in the third person and a sentence of two lines at most."""
    docstrings = {
        str(file.relative_to(ROOT)): ast.get_docstring(ast.parse(file.read_text())) or ""
        for file in sorted((ROOT / package).rglob("*.py"))
    }

    assert docstrings
    assert {name: fault for name, text in docstrings.items() if (fault := fault_of(text))} == {}


@pytest.mark.parametrize(
    ("docstring", "fault"),
    [
        ("", "verb"),
        ("What waits to be worked off.", "verb"),
        ("The plan of a batch.", "verb"),
        ("Names and columns of a table.", "verb"),
        ("Names of columns.", "verb"),
        ("Files that were exported again.", "verb"),
        ("Compress files.", "verb"),
        ("This module finds files.", "verb"),
        ("`lakejoin run`: works off what is pending.", "verb"),
        ("Finds files", "sentence"),
        ("Finds which files\nthe next batch reads, and which of them\nit read before.", "sentence"),
        ("Finds files\n\nof a source.", "sentence"),
        ("Finds which files the next batch reads.", None),
        ("Names what a join reads. Its columns follow.", None),
        ("Reads and writes the journal of a lake.", None),
        ("Opens the tables of a lake\n(see `storage.lake`).\n\nMore.", None),
    ],
)
def test_docstring_that_says_not_what_a_module_does_is_recognised(docstring: str, fault: str | None) -> None:
    """The rule itself finds questions, nouns and sentences without an end."""
    assert (fault is None) == (fault_of(docstring) is None)
    assert fault is None or fault in str(fault_of(docstring))
