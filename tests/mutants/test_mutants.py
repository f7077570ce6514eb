"""The list of mutants fits the tree, and what a run of one's tests shows of it is told right."""

import ast
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import pytest

from mutants.catalogue import Mutant, WrongEntry, read_mutants
from mutants.run import Case, Outcome, Verdict, cases, judged, main

ROOT = Path(__file__).resolve().parents[2]
MUTANTS = read_mutants()
TEST = "tests/a.py::test_one"


@cache
def functions(file: str) -> frozenset[str]:
    """The functions of a module of tests."""
    tree = ast.parse((ROOT / file).read_text())
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def test_list_is_as_long_as_promised() -> None:
    """And no entry stands in it twice."""
    assert len(MUTANTS) >= 30
    assert len(
        {(mutant.file, mutant.applied((ROOT / mutant.file).read_text())) for mutant in MUTANTS}
    ) == len(MUTANTS)
    assert len({mutant.promise for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize("mutant", MUTANTS, ids=[str(mutant.number) for mutant in MUTANTS])
def test_entry_fits_the_tree(mutant: Mutant) -> None:
    """Its old text stands once in its file, with the new one that is still a program, and its tests are there."""
    compile(mutant.applied((ROOT / mutant.file).read_text()), mutant.file, "exec")
    for test in mutant.tests:
        file, _, name = test.partition("::")
        assert name.partition("[")[0] in functions(file), test
    assert mutant.tests


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a < b\na < b\n", "has the old text 2 times"),
        ("a > b\n", "has the old text 0 times"),
    ],
)
def test_text_that_does_not_stand_there_once_is_told(text: str, told: str) -> None:
    """Else nobody would know what was changed."""
    with pytest.raises(WrongEntry, match=told):
        Mutant(1, "", "a.py", "a < b", "a <= b", ()).applied(text)


@pytest.mark.parametrize("new", ["a < b", "a <= b\nc"])
def test_change_is_one_line(new: str) -> None:
    """Not none, and not several."""
    with pytest.raises(WrongEntry, match=r"lines of a\.py are changed; expected one"):
        Mutant(1, "", "a.py", "a < b", new, ()).applied("a < b\n")


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        ([("[a]", "passed"), ("[b]", "failed")], "killed"),
        ([("[a]", "passed"), ("[b]", "passed")], "survived"),
        ([("", "not begun")], "broken"),
        ([("", "skipped")], "broken"),
        ([("_more", "failed")], "broken"),
        ([], "broken"),
    ],
)
def test_mutant_is_killed_by_what_its_test_finds_alone(
    found: list[tuple[str, Outcome]], verdict: Verdict
) -> None:
    """Not by a test that is skipped, cannot begin or is not there, nor by another one."""
    assert judged([TEST], [Case(TEST + case, outcome) for case, outcome in found])[0] == verdict


def test_each_named_test_has_to_fail() -> None:
    """One that passes is named."""
    found = [Case(TEST, "failed"), Case("tests/a.py::test_two", "passed")]

    assert judged([TEST, "tests/a.py::test_two"], found) == ("survived", "tests/a.py::test_two")


def test_change_that_no_program_could_have_kills_nothing() -> None:
    """A name that is not there fails every test."""
    found = [Case(TEST, "failed", "NameError: name 'x' is not defined\nmore")]

    assert judged([TEST], found) == ("broken", f"{TEST}: NameError: name 'x' is not defined")


def test_report_tells_failures_from_what_did_not_begin() -> None:
    """As pytest writes it: an error is one of a fixture."""
    kinds = ("", '<failure message="m"/>', '<error message="m"/>', '<skipped message="m"/>')
    text = "".join(f'<testcase file="tests/a.py" name="test_one">{kind}</testcase>' for kind in kinds)

    found = list(cases(ElementTree.ElementTree(ElementTree.fromstring(f"<all>{text}</all>"))))

    assert {case.test for case in found} == {TEST}
    assert [case.outcome for case in found] == ["passed", "failed", "not begun", "skipped"]


@pytest.mark.parametrize(
    ("word", "asked"),
    [("7", True), ("1", False), ("GRACE", True), ("b.py", True), ("two", True), ("x", False)],
)
def test_word_chooses_by_number_or_by_what_it_stands_in(word: str, asked: bool) -> None:
    """A number is no part of another one, nor of the name of a case."""
    mutant = Mutant(7, "late by the grace", "a/b.py", "", "", ("tests/a.py::test_two[1]",))

    assert mutant.is_asked(word) == asked


def test_word_that_fits_no_mutant_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Else a mistyped word would look like a list without survivors."""
    assert main(["no such word"]) == 2
    assert "no mutant fits no such word" in capsys.readouterr().err
