"""The page on the specifications: what it names is there."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "kips.md").read_text("utf-8")


def test_page_names_tests_that_there_are() -> None:
    """By file and name, in words."""
    named = re.findall(r"\[([^\]]+)\]\(\.\./(tests/[^)]+\.py)\)", PAGE)
    assert len(named) > 30
    wrong = [
        (file, name)
        for name, file in named
        if f"def test_{name.replace(' ', '_')}(" not in (ROOT / file).read_text("utf-8")
    ]
    assert wrong == []


def test_page_names_cases_that_there_are() -> None:
    """Of both kinds of joins where it names none."""
    cases = [path.stem for path in (ROOT / "tests" / "conformance" / "cases").glob("*.json")]
    named = set(re.findall(r"`((?:kip\d+|fk|st)-[a-z0-9-]+)`", PAGE))
    assert len(named) > 20
    assert {name for name in named if not any(case.startswith(name) for case in cases)} == set()
