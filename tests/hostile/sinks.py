"""Finds in the code every place where a text leaves for a terminal, a log, Dagster or a page."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("transforms", "storage", "expectations", "orchestration")
_LEVELS = {"debug", "info", "warning", "warn", "error", "exception", "critical", "log", "log_event"}
_LOGS = {"log", "_log", "logger", "_logger", "logging"}
_FUNCTIONS = {
    *("print", "echo", "secho", "add_row", "add_column", "add_task", "run_process"),
    *("Failure", "SkipReason", "TableRecord", "TableColumn", "RenderedStringTemplateContent"),
    *("AssetMaterialization", "AssetObservation", "AssetCheckResult", "MaterializeResult"),
    *("add_output_metadata", "add_asset_metadata", "add_metadata", "warn"),
}
"""What hands a text on, whatever it is called on."""
_DATA = {"MetadataValue.int", "MetadataValue.float", "MetadataValue.bool"}
"""What takes numbers only."""
_MARKUP = re.compile(r"</?(a|b|p|h\d|tr|t[dh]|table|code|pre|div|span|ul|li|br|html|body|details|title)\b")
SAFE = {"printable", "printable_html", "printable_code", "len"}
"""What makes a text fit to be looked at, or a number of it."""


@dataclass(frozen=True, order=True)
class Sink:
    """A call, or a text with tags, by file and function."""

    file: str
    function: str
    callee: str

    def __str__(self) -> str:
        """The sink as the list of them is written."""
        return f"{self.file}:{self.function}: {self.callee}"


def find_sinks(root: Path = ROOT) -> list[str]:
    """Every sink whose texts do not all plainly pass `printable` or stand in the code; of a second one a second line.

    Those that do are safe as they are written.
    """
    found = [
        str(sink)
        for package in PACKAGES
        for file in (root / package).rglob("*.py")
        for sink, plain in _sinks(ast.parse(file.read_text()), str(file.relative_to(root)), "module")
        if not plain
    ]
    return sorted(found)


def _sinks(node: ast.AST, file: str, function: str) -> Iterator[tuple[Sink, bool]]:
    for child in ast.iter_child_nodes(node):
        inside = child.name if isinstance(child, ast.FunctionDef | ast.ClassDef) else function
        if (
            isinstance(child, ast.Call)
            and (callee := _dotted(child.func))
            and (child.args or child.keywords)
            and (_is_sink(callee) or _is_described(child, file))
        ):
            yield Sink(file, function, callee), all(map(is_plain, _handed(child)))
        elif isinstance(child, ast.JoinedStr) and _has_tags(child):
            yield Sink(file, function, "HTML"), is_plain(child)
        yield from _sinks(child, file, inside)


def _is_sink(callee: str) -> bool:
    receiver, _, name = callee.rpartition(".")
    if name in _LEVELS:
        return receiver.rpartition(".")[2] in _LOGS
    if receiver.startswith(("sys.std", "sys.__std")):
        return True
    if receiver.endswith("MetadataValue"):
        return callee not in _DATA
    return name in _FUNCTIONS


def _is_described(call: ast.Call, file: str) -> bool:
    """Whether a call of Dagster's, or of a bar, takes a description that is not in the code."""
    if not file.startswith(("orchestration/defs/", "orchestration/cli/")):
        return False
    return any(keyword.arg == "description" and not is_plain(keyword.value) for keyword in call.keywords)


def _handed(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *[keyword.value for keyword in call.keywords]]


def is_plain(node: ast.expr) -> bool:
    """Whether an expression is a text of the code, or passes `printable` as it stands."""
    match node:
        case ast.Constant():
            return True
        case ast.JoinedStr(values=values):
            return all(is_plain(v.value) if isinstance(v, ast.FormattedValue) else True for v in values)
        case ast.Call(func=func):
            return _dotted(func) in SAFE
        case _:
            return False


def _has_tags(text: ast.JoinedStr) -> bool:
    return any(isinstance(part, ast.Constant) and _MARKUP.search(str(part.value)) for part in text.values)


def _dotted(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            return f"{_dotted(value)}.{name}"
        case ast.Call(func=func):
            return f"{_dotted(func)}()"
        case _:
            return ""
