"""YAML as the configuration reads it: lines, scalars, and what is refused before any model sees it."""

from pathlib import Path

import pytest

from lakejoin.orchestration.config import ConfigurationError, load
from lakejoin.orchestration.config.document import (
    MAX_ALIASES,
    MAX_BYTES,
    MAX_DEPTH,
    MAX_VALUES,
    read_document,
    written,
)


def test_every_value_has_the_line_it_stands_on() -> None:
    """Scalars have their own line, mappings and lists that of their key."""
    document = read_document("a: 1\nb:\n  - x\n  - {c: y,\n     d: z}\n", "x.yaml")

    assert document.lines == {
        (): 1, ("a",): 1, ("b",): 2, ("b", 0): 3, ("b", 1): 4, ("b", 1, "c"): 4, ("b", 1, "d"): 5,
    }  # fmt: skip
    assert document.problems == ()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("FALSE", False),
        ("on", "on"),
        ("yes", "yes"),
        ("y", "y"),
        ("12:30", "12:30"),
        ("2013-01-01", "2013-01-01"),
        ("1_000", "1_000"),
        ("12", 12),
        ("-012", -12),
        ("0x1F", 31),
        ("0o17", 15),
        ("1.50", 1.5),
        ("1e3", 1000.0),
        ("-.inf", float("-inf")),
        ("~", None),
        ("", None),
        ("null", None),
        ("'null'", "null"),
        ("'12'", "12"),
        ("!!str 12", "12"),
        ("!!int x", "x"),
        ("9" * 5000, "9" * 5000),
        ("|\n  two\n  lines", "two\nlines\n"),
        ("[a, {b: c}]", ("a", {"b": "c"})),
    ],
)
def test_scalar_is_read_by_the_core_schema(text: str, value: object) -> None:
    """Words and times that YAML 1.1 would turn into something else stay text."""
    document = read_document(f"key: {text}\n", "x.yaml")

    assert document.problems == ()
    assert document.data["key"] == value
    assert type(document.data["key"]) is type(value)


def test_keys_are_text_whatever_they_look_like() -> None:
    """A column may be called `no`, `1` or `null` without quotes."""
    assert list(read_document("no: 1\n1: 2\nnull: 3\n", "x").data) == ["no", "1", "null"]


def test_alias_repeats_its_value() -> None:
    """A value can be named and used again; its lines are those where it is written."""
    document = read_document("a: &columns\n  x: int\nb: *columns\n", "x")

    assert document.data == {"a": {"x": "int"}, "b": {"x": "int"}}
    assert document.lines["b", "x"] == 2


@pytest.mark.bad_input(33)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "x.yaml: the file is empty; expected name, lake, tables and joins"),
        ("# nothing\n", "x.yaml: the file is empty; expected name, lake, tables and joins"),
        ("- a\n", "x.yaml:1: expected a mapping with name, lake, tables and joins"),
        ("just text\n", "x.yaml:1: expected a mapping with name, lake, tables and joins"),
        (
            "a: 1\nb: {c: 1\n",
            (
                "x.yaml:3: not valid YAML: expected ',' or '}', but got '<stream end>' while parsing a "
                "flow mapping that begins on line 2"
            ),
        ),
        (
            "a: {b: x/{date}}\n",
            (
                "x.yaml:1: not valid YAML: expected ',' or '}', but got '{' while parsing a flow mapping "
                "that begins on line 1; put text that holds { or } in quotes"
            ),
        ),
        (
            "a: b: c\n",
            (
                "x.yaml:1: not valid YAML: mapping values are not allowed here; put text that holds ': ' "
                "in quotes, and a ':' behind a key on the line before"
            ),
        ),
        (
            "a:\n\tb: 1\n",
            (
                "x.yaml:2: not valid YAML: found character '\\t' that cannot start any token; indent with "
                "spaces, not tabs"
            ),
        ),
        (
            "a: @x\n",
            (
                "x.yaml:1: not valid YAML: found character '@' that cannot start any token; put the text "
                "in quotes"
            ),
        ),
        (
            "a: 1\n---\nb: 2\n",
            (
                "x.yaml:2: not valid YAML: but found another document expected a single document in the "
                "stream that begins on line 1; one file holds one pipeline"
            ),
        ),
        ("a: *none\n", "x.yaml:1: not valid YAML: found undefined alias 'none'"),
        ("a: 1\nb: \x07\n", "x.yaml:2: the character U+0007 is not allowed in YAML; remove it"),
        ("a: 1\na: 2\n", "x.yaml:2: a: duplicate key; it already stands on line 1"),
        ("a:\n  b: 1\n  'b': 2\n", "x.yaml:3: a.b: duplicate key; it already stands on line 2"),
        ("[a]: 1\n", "x.yaml:1: a key must be text, found a list or a mapping"),
        (
            "a: &x {b: 1}\nc: {<<: *x}\n",
            "x.yaml:2: c: merge keys ('<<') are not supported; write the keys out",
        ),
        (
            "a: !!python/object/apply:os.system [ls]\n",
            ("x.yaml:1: a: the tag '!!python/object/apply:os.system' is not supported; write a plain value"),
        ),
        ("a: !env HOME\n", "x.yaml:1: a: the tag '!env' is not supported; write a plain value"),
        ("a: " + "[" * 30 + "]" * 30, f"x.yaml:1: nested deeper than {MAX_DEPTH} levels"),
        ("a: " + "[" * 5000 + "]" * 5000, f"x.yaml:1: nested deeper than {MAX_DEPTH} levels"),
        ("a: &x 1\nb: [" + "*x, " * 300 + "1]", f"x.yaml:2: more than {MAX_ALIASES} aliases"),
        ("a: &x [*x]\n", f"x.yaml:1: aliases lead deeper than {MAX_DEPTH} levels"),
        pytest.param(
            "a: [" + "1, " * 150_000 + "1]\n",
            f"x.yaml:1: more than {MAX_VALUES} values",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_yaml_is_refused(text: str, expected: str) -> None:
    """What cannot be read, or could do harm, is one problem with its line."""
    assert [str(problem) for problem in read_document(text, "x.yaml").problems] == [expected]


@pytest.mark.bad_input(33)
def test_alias_bomb_is_refused_soon() -> None:
    """Aliases of aliases that would make 10^9 values end at the bound."""
    lists = "".join(f"l{n}: &l{n} [" + ", ".join([f"*l{n - 1}"] * 9) + "]\n" for n in range(1, 10))

    problems = read_document(f"l0: &l0 [x, x, x, x, x, x, x, x, x]\n{lists}", "x").problems

    assert [problem.message for problem in problems] == [f"more than {MAX_VALUES} values"]


def test_value_with_an_unknown_tag_has_no_second_message(tmp_path: Path) -> None:
    """What the model would say about the missing value is left out."""
    path = tmp_path / "x.yaml"
    path.write_text("name: !env NAME\nlake: x\ntables: !!set {a}\n", "utf-8")

    with pytest.raises(ConfigurationError) as caught:
        load(path)

    assert [problem.line for problem in caught.value.problems] == [1, 3]


@pytest.mark.bad_input(33)
@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"name: \xff\n", "not UTF-8 text (byte 6 is 0xff); save it as UTF-8"),
        ("name: x\n".encode("utf-16"), "not UTF-8 text (byte 0 is 0xff); save it as UTF-8"),
        (b"#" * (MAX_BYTES + 1), f"larger than {MAX_BYTES} bytes; a configuration file is not"),
    ],
)
def test_file_that_is_no_text_is_refused(tmp_path: Path, content: bytes, expected: str) -> None:
    """Bytes that are no configuration are refused before YAML is read."""
    path = tmp_path / "lakejoin.yaml"
    path.write_bytes(content)

    with pytest.raises(ConfigurationError) as caught:
        load(path)

    assert str(caught.value) == f"{path}: {expected}"


def test_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """A missing file and a directory are problems of the configuration, too."""
    with pytest.raises(
        ConfigurationError, match=r"none\.yaml: no such file; give the path of a configuration file"
    ):
        load(tmp_path / "none.yaml")
    with pytest.raises(ConfigurationError, match="cannot be read: Is a directory"):
        load(tmp_path)


def test_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    """Editors of Windows begin a file with one."""
    path = tmp_path / "x.yaml"
    path.write_text("\ufeffnam: x\n", "utf-8")

    with pytest.raises(ConfigurationError, match="unknown key 'nam'"):
        load(path)


@pytest.mark.parametrize(
    "text",
    ["on", "no", "1e3", "0o7", "0x1f", "1_000", "12:30", "2026-01-01", "~", "null", "True", ".5", "-.inf", ".NaN", "=",
     "<<", "", " a ", "a: b", "# a", "'", '"', "@", "a\nb", "\x1b", "\u2028", "é", "- a", "{", "1.", "+1", "1E+20"],
)  # fmt: skip
def test_what_is_written_is_read_as_it_was(text: str) -> None:
    """As a value and as a key, in blocks and on one line."""
    data = {"x": text, "list": (text, 1, 1.5, None, True), text or "empty": {"deep": [text]}}
    as_lists = {"x": text, "list": (text, 1, 1.5, None, True), text or "empty": {"deep": (text,)}}
    for flow in (False, True):
        assert read_document(written(data, flow=flow), "x").data == as_lists
