"""Applies the mutants one at a time, each to a copy of the tree, and reports those that no test noticed.

    run.py [WORD...]    those of mutants.yaml that a word fits: by number, promise, file or test; all without a word

First the tests that the list names must pass as the tree is. Then each mutant is put into the copy, and only the tests
that it names are run. It is killed if each of them failed by what it found. It survives if one passed. An entry whose
tests were not found, not run or could not even begin shows nothing: it is reported as broken. Exit code 1 if a mutant
survived or an entry is broken, 2 for wrong usage.

Each mutant has a process of its own. All have one JVM, and each a Spark context of its own in it: to start a JVM takes
longer than most tests.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

_ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(_ROOT), str(_ROOT / "tests")]  # run as a script, from wherever

from lakejoin.storage.spark.session import start_session  # noqa: E402
from mutants.catalogue import Mutant, WrongEntry, read_mutants  # noqa: E402  (the path above makes it importable)

Outcome = Literal["passed", "failed", "skipped", "not begun"]
Verdict = Literal["killed", "survived", "broken"]
_SECONDS = 900
"""For the tests of one mutant: one that makes the code wait for ever shows nothing either."""
_NO_MUTANT = ("SyntaxError", "IndentationError", "NameError", "ImportError", "ModuleNotFoundError")
"""What is raised by a change that no program could have: that a test fails by it is no wonder."""


@dataclass(frozen=True)
class Case:
    """A case of a test, as pytest reports it."""

    test: str
    outcome: Outcome
    message: str = ""


class Tree:
    """A copy of the tree, so that nobody meets a mutant in the tree itself, however a run ends."""

    def __init__(self, folder: Path, jvm: Mapping[str, str]) -> None:
        """Copy what git knows, or would if it were added. `jvm`: of `start_jvm`."""
        self._folder, self._jvm = folder, jvm
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=_ROOT, capture_output=True, text=True, check=True,
        )  # fmt: skip
        for name in filter(None, listed.stdout.split("\0")):
            if (_ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(_ROOT / name, folder / name)

    def judge(self, mutant: Mutant) -> tuple[Verdict, str]:
        """Apply a mutant, run its tests, and take it back. Returns what became of it, and why."""
        path = self._folder / mutant.file
        former = path.read_text()
        try:
            path.write_text(mutant.applied(former))
            return judged(mutant.tests, self.run(mutant.tests))
        except WrongEntry as error:
            return "broken", str(error)
        finally:
            path.write_text(former)

    def run(self, tests: Sequence[str]) -> Sequence[Case]:
        """Run tests in a process of their own; return their cases, none where the tests could not be found."""
        report, log = self._folder / "mutant.xml", self._folder / "mutant.log"
        report.unlink(missing_ok=True)
        command = [
            sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}",
            "-o", "junit_family=xunit1", *(["-x"] if len(tests) == 1 else []), *tests,
        ]  # fmt: skip
        environment = {
            **os.environ,
            **self._jvm,
            "PYTHONPATH": os.pathsep.join([str(self._folder), str(self._folder / "tests")]),
            # bytecode is known by the second and the size of its source: two mutants may have the same
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        try:
            with log.open("wb") as output:
                subprocess.run(
                    command, cwd=self._folder, env=environment, stdout=output, stderr=output,
                    timeout=_SECONDS * max(1, len(tests)), check=False,
                )  # fmt: skip
        except subprocess.TimeoutExpired:
            return []
        return list(cases(ElementTree.parse(report))) if report.exists() else []


def start_jvm() -> Mapping[str, str]:
    """Start a JVM that ends with this process; return the variables by which PySpark finds it."""
    spark = start_session("local[2]", {"spark.driver.extraJavaOptions": "-XX:+UseSerialGC"})
    gateway = spark.sparkContext._gateway.gateway_parameters
    spark.stop()
    return {
        "PYSPARK_GATEWAY_PORT": str(gateway.port),
        "PYSPARK_GATEWAY_SECRET": str(gateway.auth_token),
    }


def cases(report: ElementTree.ElementTree) -> Iterable[Case]:
    """Yield what a report says of each case."""
    for case in report.iter("testcase"):
        test = f"{case.get('file')}::{case.get('name')}"
        for kind, outcome in _OUTCOMES.items():
            if (found := case.find(kind)) is not None:
                yield Case(test, outcome, found.get("message") or "")
                break
        else:
            yield Case(test, "passed")


_OUTCOMES: Mapping[str, Outcome] = {"error": "not begun", "failure": "failed", "skipped": "skipped"}


def judged(tests: Sequence[str], found: Sequence[Case]) -> tuple[Verdict, str]:
    """Say what the cases of the named tests show of a mutant, and why."""
    passed = []
    for test in tests:
        own = [case for case in found if test in (case.test, case.test.partition("[")[0])]
        failed = [case for case in own if case.outcome == "failed"]
        if failed and all(case.message.startswith(_NO_MUTANT) for case in failed):
            return "broken", f"{test}: {failed[0].message.splitlines()[0]}"
        if not failed and {case.outcome for case in own} != {"passed"}:
            told = ", ".join(sorted({case.outcome for case in own})) or "not found, or not ended in time"
            return "broken", f"{test}: {told}"
        if not failed:
            passed.append(test)
    return ("survived", "; ".join(passed)) if passed else ("killed", "")


def main(words: Sequence[str]) -> int:
    """Run the mutants that are asked for; return the exit code."""
    chosen = [mutant for mutant in read_mutants() if not words or any(map(mutant.is_asked, words))]
    if not chosen:
        sys.stderr.write(f"no mutant fits {' or '.join(words)}\n")
        return 2
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Tree(Path(folder), start_jvm())
        tests = list(dict.fromkeys(test for mutant in chosen for test in mutant.tests))
        _say(f"{len(tests)} tests, as the tree is")
        if failing := _failing(tests, tree.run(tests)):
            _say("\n".join(f"  {test}" for test in failing))
            return 1
        ended = {mutant: _told(mutant, tree) for mutant in chosen}
    count = {verdict: list(ended.values()).count(verdict) for verdict in ("killed", "survived", "broken")}
    _say(", ".join(f"{number} {verdict}" for verdict, number in count.items()))
    return 0 if count["killed"] == len(chosen) else 1


def _failing(tests: Sequence[str], found: Sequence[Case]) -> list[str]:
    """Tests that say something without a mutant already."""
    verdicts = {test: judged([test], found) for test in tests}
    return [f"{test}: {why}" for test, (verdict, why) in verdicts.items() if verdict != "survived"]


def _told(mutant: Mutant, tree: Tree) -> Verdict:
    begun = time.monotonic()
    verdict, why = tree.judge(mutant)
    _say(f"{verdict:8} {time.monotonic() - begun:4.0f} s {mutant.name}{f'  ({why})' if why else ''}")
    return verdict


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
