"""Counts the lines and quotes of a text while it passes by in chunks, and how long what is open has become."""

from collections.abc import Iterator

_CRLF = b"\r\n"
_OTHER = b"_"
_LINES_BACK = 1000
"""How many lines are looked back for one that ends outside quotes; few have any within."""


class TextCounts:
    """What was counted of a text so far."""

    def __init__(self, *, quote: str = "", escape: str = "") -> None:
        self._quote, self._escape = quote.encode(), escape.encode()
        self._is_escaped = False
        self._ends: set[int] = set()  # whether the quotes before a CR LF were even (0) or odd (1)
        self.size = self.newlines = self.quotes = self.open_line = self.open_record = self.longest_record = 0
        self.last = self.appended = b""
        self.at_boundary = self.continued = False

    def feed(self, text: bytes) -> None:
        """Count what comes next."""
        if not text:
            return
        if self._escape:
            text = self._without_escapes(text)
        if self.at_boundary and not self.appended:
            self.continued = self.quotes % 2 == 1
        if self.at_boundary and len(self.appended) < len(_CRLF):
            self.appended += text[: len(_CRLF) - len(self.appended)]
        # one that is outside quotes is enough: of such a file nothing more has to be found out
        if self._quote and 0 not in self._ends:
            self._ends.update(self._line_ends(text))
        self.size += len(text)
        quotes = text.count(self._quote) if self._quote else 0
        if self._quote:
            self._measure_record(text, self.quotes + quotes)
        end = text.rfind(b"\n")
        self.open_line = len(text) - end - 1 if end >= 0 else self.open_line + len(text)
        self.newlines += text.count(b"\n")
        self.quotes += quotes
        self.last = text[-1:]

    @property
    def returns(self) -> bool:
        """Whether a line ends with CR LF; where a quote is left open, nothing says which are within quotes."""
        return 0 in self._ends or (bool(self._ends) and self.quotes % 2 == 1)

    def _without_escapes(self, text: bytes) -> bytes:
        """The text with other signs in the place of those that an escape stands before."""
        if self._is_escaped and text[:1] in {self._escape, self._quote}:
            text = _OTHER + text[1:]
        text = text.replace(self._escape * 2, _OTHER * 2).replace(self._escape + self._quote, _OTHER * 2)
        self._is_escaped = text.endswith(self._escape)
        return text

    def _measure_record(self, text: bytes, quotes: int) -> None:
        """Add to the record that is open, or begin another behind the last line end that is outside quotes."""
        end = len(text)
        for _ in range(_LINES_BACK):
            start = text.rfind(b"\n", 0, end)
            if start < 0:
                break
            quotes -= text.count(self._quote, start, end)
            end = start
            if quotes % 2 == 0:
                self.open_record = len(text) - start - 1
                return
        self.open_record += len(text)
        self.longest_record = max(self.longest_record, self.open_record)

    def _line_ends(self, text: bytes) -> Iterator[int]:
        """For each CR LF, up to the first that is outside quotes, the number of quotes before it modulo 2."""
        quotes, position = self.quotes, 0
        if self.last + text[:1] == _CRLF:
            yield quotes % 2
        while (end := text.find(b"\r", position)) >= 0:  # one byte is found much faster than two
            quotes += text.count(self._quote, position, end)
            position = end + 1
            if text[position : position + 1] == b"\n":
                yield quotes % 2
                if quotes % 2 == 0:
                    return
