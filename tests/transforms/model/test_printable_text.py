"""Texts of others as they are looked at."""

import re
import unicodedata

import pytest

from hostile.texts import LONG, TEXTS, unseen
from lakejoin.transforms.model.printable_text import LONGEST, printable, printable_code, printable_html


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_nothing_acts_and_nothing_hides(text: str) -> None:
    """Whatever the text is, one line comes out that can be encoded and has no character without a glyph."""
    for shown in (printable(text), printable_html(text), printable_code(text)):
        assert unseen(shown) == []
        assert "\n" not in shown
        assert len(shown.encode()) < LONG


def test_no_control_or_format_character_is_left() -> None:
    """Of all characters: nothing that Unicode calls control, format, surrogate or separator comes through."""
    through = "".join(chr(code) for code in range(0x110000) if printable(chr(code)) == chr(code))

    assert {
        c for c in through if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    } == set()
    assert [c for c in through if unicodedata.category(c) == "Zs"] == [" "]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", r"\x1b[2J"),
        ("\x9b31m", r"\x9b31m"),
        ("a\u202eb", r"a\u202eb"),
        ("\ufeff\u2028", r"\ufeff\u2028"),
        ("two\nlines", r"two\nlines"),
        ("\ud800", r"\ud800"),
        ("\U000e0041", r"\U000e0041"),
        ("東京 é😀 [red] {date} %s", "東京 é😀 [red] {date} %s"),
    ],
)
def test_characters_are_shown_as_python_writes_them(text: str, shown: str) -> None:
    """Whatever has a glyph stays, whatever has none is named by its number."""
    assert printable(text) == shown


def test_of_a_long_text_the_middle_is_left_out() -> None:
    """Both ends stay, for a message ends with what to do, and the gap says how much is missing."""
    assert printable("a" * LONGEST) == "a" * LONGEST
    assert printable("head" + "x" * LONGEST + "tail").startswith("head")
    assert printable("head" + "x" * LONGEST + "tail").endswith("xtail")
    assert "… (8 characters left out) …" in printable("head" + "x" * LONGEST + "tail")
    assert printable("x" * LONG, None) == "x" * LONG


@pytest.mark.parametrize("text", ["a`b", "``` a ``", "`", "`` ", "", " ", "[a](b)", "<b>"])
def test_code_span_holds_its_text(text: str) -> None:
    """Read as CommonMark reads a code span, the text comes back: no run of ticks in it is as long as the fence."""
    code = printable_code(text)
    fence = re.match("`+", code)

    assert fence is not None
    inside = code[len(fence[0]) : -len(fence[0])]
    assert fence[0] not in re.findall("`+", inside)
    if inside.startswith(" ") and inside.endswith(" ") and inside.strip():
        inside = inside[1:-1]
    assert inside.strip() == text.strip()


def test_html_is_escaped() -> None:
    """Tags and quotes of a text are text."""
    assert printable_html('<b a="\'">&\x1b') == "&lt;b a=&quot;&#x27;&quot;&gt;&amp;\\x1b"
