"""Tables for a terminal and for everything else."""

import io

import pytest
from rich.console import Console

from lakejoin.orchestration.cli import terminal

COUNTS = {
    "flights": {"records": 21643, "applied": 21482, "duplicate": 55, "late": 0},
    "planes": {"records": 4990, "applied": 4889},
}
ORDER = {"records": True, "applied": True, "duplicate": False, "late": False}


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """Return what a terminal of 40 columns shows."""
    text = io.StringIO()
    console = Console(
        file=text, force_terminal=True, width=40, color_system=None, highlight=False, markup=False
    )
    monkeypatch.setattr(terminal, "console", lambda file=None: console)
    return text


def shown(screen: io.StringIO) -> list[list[str]]:
    """Return the cells of what is shown, without the frame."""
    frame = "┃│"
    lines = [line for line in screen.getvalue().splitlines() if line[:1] and line[0] in frame]
    return [[cell.strip() for cell in line.strip(frame).replace("┃", "│").split("│")] for line in lines]


def test_counts_are_a_line_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    """Where no terminal is, columns are aligned; a reason that never occurred is left out."""
    terminal.print_counts("Records", "table", COUNTS, ORDER)

    assert capsys.readouterr().out == (
        "Records\n"
        "  table    records  applied  duplicate\n"
        "  flights   21,643   21,482         55\n"
        "  planes     4,990    4,889          0\n"
    )


def test_counts_turn_on_a_narrow_terminal(screen: io.StringIO) -> None:
    """What would not fit is shown with a column for each name."""
    terminal.print_counts("Records", "table", COUNTS, ORDER)

    assert shown(screen) == [
        ["table", "flights", "planes"],
        ["records", "21,643", "4,990"],
        ["applied", "21,482", "4,889"],
        ["duplicate", "55", "0"],
    ]


def test_counts_of_nothing_print_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """A pipeline without joins has no table of joins."""
    terminal.print_counts("Answers", "join", {}, ORDER)

    assert capsys.readouterr().out == ""


def test_rows_that_fit_are_a_table(screen: io.StringIO) -> None:
    """Null is a word, and control characters do not break the frame."""
    terminal.print_rows(terminal.console(), ["id", "note"], [["1", None], ["2", "two\nlines\x1b[31m"]])

    assert shown(screen) == [["id", "note"], ["1", "null"], ["2", r"two\nlines\x1b[31m"]]


def test_rows_wider_than_the_terminal_are_a_line_a_column(screen: io.StringIO) -> None:
    """Squeezed into the width, nobody could read them."""
    terminal.print_rows(terminal.console(), ["id", "description"], [["1", "x" * 50]])

    lines = screen.getvalue().splitlines()
    assert set(lines[0]) == {"─"}
    assert lines[1:] == ["         id  1", "description  " + "x" * 50]


def test_text_that_looks_like_markup_stays(capsys: pytest.CaptureFixture[str]) -> None:
    """Neither brackets nor colons of data are taken for styles or emojis."""
    terminal.say("[red]flights[0][/red] :smile: {date}")

    assert capsys.readouterr().out == "[red]flights[0][/red] :smile: {date}\n"


def test_bar_says_nothing_where_no_terminal_is(capsys: pytest.CaptureFixture[str]) -> None:
    """A log file is not filled with bars."""
    with terminal.progress_bar("starting", 3) as bar:
        bar.describe("read/flights")
        bar.advance()

    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")
