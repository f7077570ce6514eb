"""Reads a YAML text into plain data that remembers the line of every key and value.

Only what a configuration needs is read: mappings, lists, and scalars of YAML 1.2's core schema (so `on`, `no` and
`12:30` are text). Tags, merge keys and duplicate keys are refused, and size, nesting and aliases have bounds, so that
no file can run code or fill the memory.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from lakejoin.orchestration.config.problems import KeyPath, Problem

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 24
MAX_ALIASES = 200
MAX_VALUES = 100_000

_TAG = "tag:yaml.org,2002:"
_TAGS = {_TAG + name for name in ("map", "seq", "str", "int", "float", "bool", "null")}
_BREAKS = re.compile(r"\r\n|[\r\n\x85\u2028\u2029]")
_HINTS = {
    "mapping values are not allowed here": (
        "put text that holds ': ' in quotes, and a ':' behind a key on the line before"
    ),
    "found character '\\t'": "indent with spaces, not tabs",
    "found character '@'": "put the text in quotes",
    "found character '`'": "put the text in quotes",
    "found character '%'": "put the text in quotes",
    "but got '{'": "put text that holds { or } in quotes",
    "expected a single document": "one file holds one pipeline",
}


@dataclass(frozen=True)
class Document:
    """What a file says, line by line, and the mistakes of its YAML."""

    name: str
    data: Any
    """Mappings as dicts, lists as tuples; None where the file could not be read."""
    lines: Mapping[KeyPath, int]
    """Line of the value, or of its key where the value is a mapping or a list."""
    key_lines: Mapping[KeyPath, int]
    problems: tuple[Problem, ...]
    unread: frozenset[KeyPath] = frozenset()
    """Where `data` has None because a problem kept the value from being read."""


def line_of(lines: Mapping[KeyPath, int], path: KeyPath) -> int:
    """The line of a value; of a missing one, the line of the mapping that lacks it."""
    return next((lines[path[:end]] for end in range(len(path), -1, -1) if path[:end] in lines), 1)


class _OutOfBounds(Exception):
    """The text is larger in some way than a configuration can be."""

    def __init__(self, message: str, place: Any) -> None:
        super().__init__(message)
        self.line: int = place.start_mark.line + 1


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader with the core schema's scalars and bounds on nesting and aliases."""

    depth = 0
    aliases = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Compose as PyYAML does, refusing what is out of bounds before recursion goes there."""
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]  # the stubs leave it bare
        self.aliases += self.check_event(yaml.AliasEvent)
        if self.aliases > MAX_ALIASES:
            raise _OutOfBounds(f"more than {MAX_ALIASES} aliases", event)
        if self.depth >= MAX_DEPTH:
            raise _OutOfBounds(f"nested deeper than {MAX_DEPTH} levels", event)
        self.depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1


class _Dumper(yaml.SafeDumper):
    """PyYAML's safe dumper, which also puts in quotes what only the core schema takes for something else than text."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - of nothing
        """Write everything out."""
        return True


_Dumper.add_representer(tuple, yaml.SafeDumper.represent_list)
_Loader.yaml_implicit_resolvers = {}
for _name, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("float", r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", "-+."),
):
    for _kind in (_Loader, _Dumper):
        _kind.add_implicit_resolver(_TAG + _name, re.compile(rf"(?:{_pattern})\Z"), list(_first))


def read_document(text: str, name: str, holds: str = "name, lake, tables and joins") -> Document:
    """Read YAML text that is a mapping. Never raises: mistakes are in `problems`.

    name: the file's name in messages; holds: what is to be in it.
    """
    builder = _Builder(name)
    try:
        root = _Loader(text).get_single_node()
        data = builder.build(root, ()) if root is not None else None
    except _OutOfBounds as error:
        return _unreadable(name, error.line, str(error))
    except yaml.MarkedYAMLError as error:
        return _unreadable(name, *_syntax(error))
    except yaml.reader.ReaderError as error:
        line = len(_BREAKS.findall(text, 0, error.position)) + 1
        return _unreadable(
            name, line, f"the character U+{error.character:04X} is not allowed in YAML; remove it"
        )
    if root is None:
        return _unreadable(name, 0, f"the file is empty; expected {holds}")
    if not isinstance(data, dict):
        return _unreadable(name, root.start_mark.line + 1, f"expected a mapping with {holds}")
    return Document(
        name, data, builder.lines, builder.key_lines, tuple(builder.problems), frozenset(builder.unread)
    )


def written(data: Any, *, flow: bool | None = False) -> str:
    """Return plain data as YAML that `read_document` reads as they are. flow: on one line, with braces."""
    text: str = yaml.dump(
        data, Dumper=_Dumper, default_flow_style=flow, sort_keys=False, allow_unicode=True, width=10**6
    )
    return text


def _unreadable(name: str, line: int, message: str) -> Document:
    return Document(name, None, {}, {}, (Problem(name, line, (), message),))


def _syntax(error: yaml.MarkedYAMLError) -> tuple[int, str]:
    """Line and message of what PyYAML could not read."""
    problem = error.problem or error.context or "unknown mistake"
    hint = next((f"; {text}" for start, text in _HINTS.items() if start in f"{error.context} {problem}"), "")
    mark = error.problem_mark or error.context_mark
    context = ""
    if error.context and error.context_mark and error.context_mark is not mark:
        context = f" {error.context} that begins on line {error.context_mark.line + 1}"
    return (mark.line + 1 if mark else 0), f"not valid YAML: {problem}{context}{hint}"


@dataclass
class _Builder:
    """Turns nodes into data, noting lines and mistakes on the way."""

    name: str
    lines: dict[KeyPath, int] = field(default_factory=dict)
    key_lines: dict[KeyPath, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    unread: set[KeyPath] = field(default_factory=set)

    def build(self, node: yaml.Node, path: KeyPath) -> Any:
        """The node's data, with lists as tuples; `path` is where it stands."""
        # The text itself is not this deep: an alias stands within what it refers to.
        if len(path) > MAX_DEPTH:
            raise _OutOfBounds(f"aliases lead deeper than {MAX_DEPTH} levels", node)
        if len(self.lines) >= MAX_VALUES:
            raise _OutOfBounds(f"more than {MAX_VALUES} values", node)
        if node.tag not in _TAGS:
            self.unread.add(path)
            tag = node.tag.replace(_TAG, "!!")
            self._refuse(node, path, f"the tag '{tag}' is not supported; write a plain value")
            return None
        self.lines[path] = node.start_mark.line + 1
        match node:
            case yaml.MappingNode():
                self.lines[path] = self.key_lines.get(path, node.start_mark.line + 1)
                return self._mapping(node, path)
            case yaml.SequenceNode():
                self.lines[path] = self.key_lines.get(path, node.start_mark.line + 1)
                return tuple(self.build(item, (*path, index)) for index, item in enumerate(node.value))
            case _:
                return _scalar(node)

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self._refuse(key, path, "a key must be text, found a list or a mapping")
                continue
            name, place = key.value, (*path, key.value)
            if name == "<<" and key.style is None:
                self._refuse(key, path, "merge keys ('<<') are not supported; write the keys out")
            elif name in data:
                first = self.key_lines[place]
                self._refuse(key, place, f"duplicate key; it already stands on line {first}")
            else:
                self.key_lines[place] = key.start_mark.line + 1
                data[name] = self.build(value, place)
        return data

    def _refuse(self, node: yaml.Node, path: KeyPath, message: str) -> None:
        problem = Problem(self.name, node.start_mark.line + 1, path, message)
        if problem not in self.problems:
            self.problems.append(problem)


def _scalar(node: yaml.Node) -> Any:
    """A scalar by its tag; text that its tag does not fit stays text and is refused where it is used."""
    text: str = node.value
    try:
        match node.tag.removeprefix(_TAG):
            case "null":
                return None
            case "bool":
                return text.lower() == "true"
            case "int":
                return int(text, 0) if text[:2] in {"0x", "0o"} else int(text)
            case "float":
                return float(re.sub(r"\.(?=inf|nan)", "", text.lower()))
    except ValueError:
        pass
    return text
