"""Mutated configuration files, types and expressions: sound, or refused with messages of one line each."""

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fuzz.mutations import SECONDS, mutated, seeds
from lakejoin.orchestration.config import ConfigurationError, load
from lakejoin.orchestration.config.docs.text import EXAMPLE
from lakejoin.orchestration.config.schema.column_types import parse_type
from lakejoin.orchestration.config.schema.expressions import expression_type

FILES = 300
LITERAL = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\"""", re.DOTALL)
EXAMPLES = settings(max_examples=int(200 + 20 * SECONDS), deadline=None)
EXPRESSIONS = [
    "upper(trim(tail))", "concat_ws('-', tail, id)", "case when id > 1 then tail else 'x' end", "id in (1, 2)",
    "try_cast(tail as bigint)", "coalesce(tail, `tail`)", "regexp_extract(tail, '(a)', 1)", "tail || '-' || id",
    "extract(year from at)",
]  # fmt: skip
WORDS = [
    "select", "from", "where", "(", ")", ",", ";", "--", "/*", "*/", "'", '"', "`", "\\", "\0", "${x}", "{{x}}",
    "now()", "rand()", "uuid()", "reflect('java.lang.System','exit',1)", "java_method(", "current_user", "=>", "as",
    "assert_true(", "raise_error(", "exists(select 1)", "over ()", "lateral", "explode(", "x -> x", ":p", "@v", "$1",
    "read_files(", "parquet.`/etc/passwd`", "delta.`x`", "?", "*", "tail", "id", "1", "'a'", "::", "[0]", ".a",
    "cast(", "interval 1 day", "at time zone",
]  # fmt: skip


@pytest.mark.bad_input(33)
def test_mutated_file_is_sound_or_has_problems_only(tmp_path: Path) -> None:
    """Nothing but `ConfigurationError` is raised, whatever the bytes are."""
    path = tmp_path / "lakejoin.yaml"
    refused = 0
    for seed in seeds():
        for content in mutated([EXAMPLE.encode().replace(b"\n", b"\v")], FILES, random.Random(seed)):
            path.write_bytes(content.replace(b"\v", b"\n"))
            try:
                load(path)
            except ConfigurationError as error:
                refused += 1
                problems = [str(problem) for problem in error.problems]
                if any("\n" in problem for problem in problems):
                    pytest.fail(f"seed {seed}: {problems}")
    assert refused > FILES / 3


@pytest.mark.bad_input(31)
@EXAMPLES
@example(['"', "select", '"'], "", 0)
@given(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=12),
    st.sampled_from(EXPRESSIONS),
    st.integers(0, 40),
)
def test_garbled_expression_is_typed_or_refused(words: list[str], sound: str, at: int) -> None:
    """Only `ValueError` is raised; what is taken holds none of what reads files, runs code or ends the batch."""
    types = {"tail": parse_type("string"), "id": parse_type("bigint"), "at": parse_type("timestamp")}
    for text in (" ".join(words), sound[:at] + " ".join(words) + sound[at:]):
        if taken(lambda text: expression_type(text, types), text):
            calls = (
                "reflect(",
                "java_method(",
                "read_files(",
                "raise_error(",
                "assert_true(",
                "rand(",
                "uuid(",
                "now(",
            )
            outside = LITERAL.sub("", text).replace(" (", "(").lower()
            assert not any(call in outside for call in (*calls, "select", "/etc", ";", "--")), text


@pytest.mark.bad_input(31)
@EXAMPLES
@given(st.text(st.sampled_from("array<>map,struct:int bigintdecimal()0123456789`'\"\0.é")))
def test_garbled_type_is_read_or_refused(text: str) -> None:
    """A type is one of a few words and signs, or a `ValueError`."""
    taken(parse_type, text)


def taken(read: Callable[[str], Any], text: str) -> bool:
    """Whether a text was read; refused is it by a message of one line."""
    try:
        read(text)
    except ValueError as error:
        if "\n" in str(error):
            pytest.fail(f"{text!r}: {error}")
        return False
    return True
