"""A case whose run raises is one failed case, whatever it is run together with."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from conformance import run
from conformance.case import Case
from conformance.isolation import run_apart

CASES = Path(__file__).parent / "cases"
NAMES = "abcdefg"


def _cases(names: str = NAMES) -> list[Case]:
    return [Case(name, "fk-inner", {}, (), (), ()) for name in names]


@pytest.mark.parametrize("bad", ["a", "d", "g", "bf", NAMES])
def test_cases_that_raise_fail_and_the_others_are_run(bad: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each case is answered once; a difference that another case has is kept."""
    answered: list[str] = []

    def together(cases: Sequence[Case]) -> dict[str, str]:
        if raising := [case.name for case in cases if case.name in bad]:
            raise ZeroDivisionError(f"in {raising[0]}\nand more")
        answered.extend(case.name for case in cases)
        return {case.name: "event 0: expected x" for case in cases if case.name == "c"}

    failures = run_apart(_cases(), together)

    expected = {name: f"raised ZeroDivisionError: in {name}" for name in bad}
    assert failures == ({} if "c" in bad else {"c": "event 0: expected x"}) | expected
    assert sorted(answered) == [name for name in NAMES if name not in bad]
    assert capsys.readouterr().err.count("Traceback") == len(bad)


def test_cases_that_raise_only_together_fail_once() -> None:
    """Else the error would be lost: apart, nothing is wrong."""

    def together(cases: Sequence[Case]) -> dict[str, str]:
        if len(cases) > 2:
            raise ValueError
        return {"b": "event 0: expected x"} if any(case.name == "b" for case in cases) else {}

    failures = run_apart(_cases("abc"), together)
    assert failures == {
        "a": "raised ValueError: nothing was said, only together with b, c", "b": "event 0: expected x",
    }  # fmt: skip


def test_nothing_is_run_where_there_are_no_cases() -> None:
    """And an interrupt by the keyboard ends the runner."""
    assert run_apart([], lambda _: {"a": "was run"}) == {}

    def interrupted(_: Sequence[Case]) -> dict[str, str]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_apart(_cases(), interrupted)


def test_file_that_is_no_case_fails_and_the_others_are_looked_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No JSON, a member that is missing, a left value of another form; no Spark is started for them."""
    _write(
        tmp_path,
        "skipped",
        {"name": "skipped", "topology": "fk-outer", "options": {}, "events": [], "expected": []},
    )
    left = {"side": "left", "key": "k", "value": 7}
    _write(
        tmp_path,
        "odd",
        {"name": "odd", "topology": "fk-left", "options": {}, "events": [left], "expected": []},
    )
    _write(tmp_path, "poor", {"name": "poor"})
    (tmp_path / "torn.json").write_text("{", "utf-8")

    assert run.main([str(tmp_path)]) == 1

    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[:2] for line in lines[:3]] == [
        ["FAIL odd", " raised TypeError"], ["FAIL poor", " raised KeyError"], ["FAIL torn", " raised JSONDecodeError"],
    ]  # fmt: skip
    assert lines[3:] == ["SKIP 1 (topology fk-outer is unknown): skipped", "1 skipped", "0 passed, 3 failed"]


@pytest.mark.spark
@pytest.mark.slow
def test_runner_goes_on_behind_a_case_that_raises(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A join whose key the pipeline refuses, and a store that is asked for what it does not have."""
    for name in ("fk-null-insert-left", "kip213-left-delete-inner", "versioned-null-key"):
        case = json.loads((CASES / f"{name}.json").read_text("utf-8"))
        if name == "kip213-left-delete-inner":
            case["events"][0]["side"] = "middle"
        if name == "versioned-null-key":
            case["events"][-1]["op"] = "guess"
            del case["events"][-1]["key"]
        _write(tmp_path, name, case)

    assert run.main([str(tmp_path)]) == 1

    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("FAIL")] == [
        "FAIL kip213-left-delete-inner: raised KeyError: 'middle'", "FAIL versioned-null-key: raised KeyError: 'key'",
    ]  # fmt: skip
    assert lines[-1] == f"{len(list(tmp_path.iterdir())) - 2} passed, 2 failed"


def _write(folder: Path, name: str, case: Mapping[str, Any]) -> None:
    (folder / f"{name}.json").write_text(json.dumps(case), "utf-8")
