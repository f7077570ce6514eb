r"""Makes texts of others fit to be looked at: names, values and messages on a terminal, in a log or on a page.

What a source holds is any sequence of characters. Some of them a terminal obeys, some turn a line around, some leave no
mark and let two names look alike. All of these are shown as Python writes them: `\x1b`, `\u202e`. Data for programs
does not pass here: JSON and CSV stay exact.
"""

import re
from html import escape

LONGEST = 4_000
"""Characters that are shown of a text: a path of the greatest length that Linux knows has fewer."""
_UNSEEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""What leaves no mark though Python calls it printable: fillers, variation selectors, the empty Braille pattern."""


def printable(text: object, longest: int | None = LONGEST) -> str:
    r"""Return a text as one line without anything that acts on what shows it or cannot be seen.

    Escaped are control characters, ends of lines, halves of surrogate pairs, marks of direction, spaces other than the
    common one, whatever else Unicode has no glyph for. Of a text that is longer than `longest` the middle is left out,
    and the gap says how much; None for no limit. What is no text is shown as `str` writes it.

    >>> printable("two\nlines\x1b[31m")
    'two\\nlines\\x1b[31m'
    >>> printable("0123456789", 4)
    '01 … (6 characters left out) … 89'
    """
    whole = str(text)
    if longest is None or len(whole) <= longest:
        return _escaped(whole)
    head, tail = whole[: longest - longest // 2], whole[len(whole) - longest // 2 :]
    return f"{_escaped(head)} … ({len(whole) - longest:,} characters left out) … {_escaped(tail)}"


def printable_lines(text: str) -> str:
    r"""Return a text of several lines, such as a traceback, with each line printable and tabs as spaces.

    >>> printable_lines("one\n\ttwo\x1b")
    'one\n    two\\x1b'
    """
    return "\n".join(map(printable, text.expandtabs(4).split("\n")))


def printable_html(text: object) -> str:
    """Return a printable text for HTML, between tags or within the quotes of an attribute.

    >>> printable_html("<b>&")
    '&lt;b&gt;&amp;'
    """
    return escape(printable(text))


def printable_code(text: object) -> str:
    """Return a printable text as a code span of Markdown, in which neither HTML nor links nor pictures are read.

    Not for a table of Markdown, where a pipe ends even a code span.

    >>> printable_code("a `tick`")
    '`` a `tick` ``'
    """
    shown = printable(text)
    fence = "`" * (max(map(len, re.findall("`+", shown)), default=0) + 1)
    # a space at either end is taken off again, which leaves a tick beside the fence apart from it
    pad = " " if shown[:1] in {"`", " ", ""} or shown[-1:] in {"`", " "} else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def _escaped(text: str) -> str:
    if text.isprintable() and not _UNSEEN.search(text):
        return text
    return "".join(c if c.isprintable() and not _UNSEEN.match(c) else _written(c) for c in text)


def _written(character: str) -> str:
    """A character as Python writes it where it writes ASCII only."""
    return ascii(character)[1:-1]
