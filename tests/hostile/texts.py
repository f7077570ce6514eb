"""Texts that act on what shows them, or hide in it, and what tells whether a shown text still does."""

TEXTS = [
    "\x1b[2J\x1b]0;title\x07", "\x9b31mred", "a\0b\x7f\x85", "\u202egnp.exe\u202c", "\u2066x\u2069",
    "a\u200b\u200d\u200f\ufeffb", "a\u2028b\u2029c", "a\r\nwarning: forged", "a\n| forged | row |",
    "tab\tbed", "\ud800", "x\ufe0f\u3164\U000e0041",
    "[red]x[/red][link=http://evil.test]y[/link]", ":smile:",
    "| a | `b` | [c](http://evil.test) ![d](http://evil.test/x.png)",
    "<script>alert(1)</script><img src=x onerror='alert(1)'>", '" onmouseover="alert(1)', "${row} $row %s {0}",
    "``` a ``", "x" * 10_000 + "end",
]  # fmt: skip
NAMES = [
    "a\x1b[2J\x1b[31mred.jsonl", "b\x9b31m.jsonl", "c\u202egnp.jsonl", "d\u200b\ufeff.jsonl", "e\u2028f.jsonl",
    "g\x7f\x85.jsonl",
    "h[red]x[link=http@evil]y.jsonl", "i`tick`|<img src=x onerror=alert(1)>.jsonl", "j" * 200 + ".jsonl",
]  # fmt: skip
"""Names that a file system, Hadoop and Lakejoin take for files."""
LONG = 10_000


def unseen(shown: str) -> list[str]:
    """Characters of a shown text that act on a screen or cannot be seen; a line's end is none."""
    return sorted({c for c in shown if not c.isprintable() and c != "\n"} | set(shown) & {"\ufe0f", "\u3164"})
