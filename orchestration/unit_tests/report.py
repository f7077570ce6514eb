"""Writes what came of unit tests: for machines as JUnit's XML, and into their own file as what is expected."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from xml.etree import ElementTree

import yaml

from lakejoin.orchestration.unit_tests.outcome import Difference, Outcome
from lakejoin.orchestration.unit_tests.values import row_text
from lakejoin.transforms.model.printable_text import printable


def failure_lines(outcome: Outcome) -> list[str]:
    """Say what is not as expected, and how the first of it came about."""
    if outcome.error is not None:
        return outcome.error.splitlines()
    lines = []
    for name, differences in outcome.differences.items():
        lines.append(name)
        for difference in differences:
            said = difference.lines() if isinstance(difference, Difference) else [difference]
            lines += [f"  {line}" for line in said]
    return [*lines, *outcome.explained]


def junit(name: str, outcomes: Sequence[Outcome], seconds: float) -> str:
    """Return JUnit's XML. name: of the suite."""
    failed = sum(not outcome.passed for outcome in outcomes)
    suite = ElementTree.Element(
        "testsuite", name=name, tests=str(len(outcomes)), failures=str(failed), time=f"{seconds:.3f}"
    )
    for outcome in outcomes:
        case = ElementTree.SubElement(
            suite, "testcase", name=printable(outcome.test.name), classname=name, line=str(outcome.test.line)
        )
        if not outcome.passed:
            lines = [printable(line) for line in failure_lines(outcome)]
            ElementTree.SubElement(case, "failure", message=lines[0]).text = "\n".join(lines)
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def update(path: Path, outcomes: Iterable[Outcome]) -> None:
    """Put what came in the place of what was expected, for each result that differs; all other text stays."""
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    changes = {}
    tests = yaml.compose("\n".join(lines), Loader=yaml.SafeLoader)
    for outcome in outcomes:
        expected = _member(_member(tests, outcome.test.name), "expect")
        indent = expected.value[0][0].start_mark.column
        differing = [name for name in outcome.test.expected if name in outcome.differences]
        new = [name for name in outcome.differences if name not in outcome.test.expected]
        for name in differing:
            key, value = next(pair for pair in expected.value if pair[0].value == name)
            changes[key.start_mark.line, _last_line(value) + 1] = _text(outcome, name, indent)
        if new:
            first = expected.value[0][0].start_mark.line
            changes[first, first] = [line for name in new for line in _text(outcome, name, indent)]
    for (start, end), text in sorted(changes.items(), reverse=True):
        lines[start:end] = text
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")


def _member(node: yaml.Node | None, name: str) -> yaml.MappingNode:
    assert isinstance(node, yaml.MappingNode)
    found = next(value for key, value in node.value if key.value == name)
    assert isinstance(found, yaml.MappingNode)
    return found


def _last_line(node: yaml.Node) -> int:
    """Return the line on which a value ends. Of a block it would be where the next one begins, behind comments."""
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _last_line(last[1] if isinstance(last, tuple) else last)
    return node.end_mark.line


def _text(outcome: Outcome, name: str, indent: int) -> list[str]:
    """Return what came of a result as lines of the file."""
    rows = outcome.rows[name]
    if isinstance(outcome.test.expected.get(name), int):
        return [f"{' ' * indent}{name}: {len(rows)}"]
    if not rows:
        return [f"{' ' * indent}{name}: []"]
    return [
        f"{' ' * indent}{name}:",
        *[f"{' ' * (indent + 2)}- {text}" for text in sorted(map(row_text, rows))],
    ]
