"""Every path and module that the docs, docstrings and comments name is there."""

import ast
import io
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakejoin.storage.sources.formats.source_format import SourceFormat

ROOT = Path(__file__).parents[1]
_PACKAGES = "transforms|storage|orchestration|expectations"
_PATH = re.compile(rf"(?<![\w./-])((?:{_PACKAGES}|bench|tests|docs|examples)/[\w./-]*\w)")
_MODULE = re.compile(rf"(?<![\w./])((?:{_PACKAGES})(?:\.\w+)+)(?![\w/])")


def _tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return listed.stdout.splitlines()


_PAGES = [name for name in _tracked() if name.endswith(".md") and "/data/" not in name]
_CODE = [name for name in _tracked() if name.endswith(".py")]


def _said(name: str) -> Iterator[tuple[int, str]]:
    """Yield the docstrings and comments of a Python file, each with its line."""
    text = (ROOT / name).read_text()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.lineno, str(node.value.value)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def _is_there(path: str) -> bool:
    """Whether a path is in the tree, begins the name of a decision, is one that a run makes, or a pattern."""
    if (ROOT / path).exists() or (path.startswith("docs/decisions/") and [*ROOT.glob(f"{path}-*")]):
        return True
    ignored = subprocess.run(
        ["git", "check-ignore", path, f"{path}/"], cwd=ROOT, check=False, capture_output=True
    )
    return ignored.returncode == 0 or "DATE" in path


def _is_defined(dotted: str) -> bool:
    """Whether a dotted name is a module, or something that a module or a package defines or imports."""
    *parents, last = dotted.split(".")
    place = ROOT.joinpath(*parents)
    if (place / last).is_dir() or (place / f"{last}.py").exists():
        return True
    for module in (place.with_suffix(".py"), place / "__init__.py"):
        if module.exists():
            return re.search(rf"\b{last}\b", module.read_text()) is not None
    return len(parents) > 1 and _is_defined(".".join(parents))  # a method


def _missing(text: str) -> list[str]:
    return [path for path in _PATH.findall(text) if not _is_there(path)] + [
        name for name in _MODULE.findall(text) if not name.endswith(".md") and not _is_defined(name)
    ]


@pytest.mark.parametrize("page", _PAGES)
def test_what_a_page_names_is_there(page: str) -> None:
    """Paths below the project, and modules with what they define."""
    assert _missing((ROOT / page).read_text()) == []


def test_what_docstrings_and_comments_name_is_there() -> None:
    """The same of every module, of the tests as well."""
    found = {f"{name}:{line}": _missing(said) for name in _CODE for line, said in _said(name)}
    assert {place: missing for place, missing in found.items() if missing} == {}


@pytest.mark.parametrize("name", ["storage/state.py", "storage.delta_log.nothing", "docs/decisions/9999"])
def test_a_name_that_is_gone_is_seen(name: str) -> None:
    """Or the tests above could not fail."""
    assert _missing(f"see `{name}`") == [name]


def test_page_on_extensions_names_every_member_of_a_format() -> None:
    """Whoever adds a format finds there all that can be said of it."""
    page = (ROOT / "docs/extending.md").read_text()
    members = [name for name in vars(SourceFormat) if not name.startswith("_")]
    assert [name for name in members if f"`{name}`" not in page] == []
