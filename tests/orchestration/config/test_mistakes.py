"""Mistakes in a configuration file: each gets one message with line, path, what was found, what is allowed.

Most of them stand in `config/mistakes.yaml`, each as a change of one sound file, with its messages.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lakejoin.orchestration.config import ConfigurationError, load, load_text

CASES = Path(__file__).parent
SOUND = (CASES / "sound.yaml").read_text("utf-8")
MISTAKES = yaml.safe_load((CASES / "mistakes.yaml").read_text("utf-8"))


def messages(text: str) -> list[str]:
    """What is wrong with the text, without the name of the file."""
    try:
        load_text(text, "lakejoin.yaml")
    except ConfigurationError as error:
        return [str(problem).removeprefix("lakejoin.yaml:") for problem in error.problems]
    return []


def changed(old: str, new: str) -> str:
    """The sound file with one place changed."""
    assert SOUND.count(old) == 1, old
    return SOUND.replace(old, new)


def test_sound_file_has_no_mistakes() -> None:
    """The file that all cases change is right as it stands."""
    assert messages(SOUND) == []


def marked(case: dict[str, Any]) -> Any:
    """The case as a parameter, with the row of the table of bad input that it is about."""
    marks = [pytest.mark.bad_input(case["bad_input"])] if "bad_input" in case else []
    return pytest.param(case, marks=marks, id=case["to"].strip() or "(nothing)")


@pytest.mark.parametrize("case", [marked(case) for case in MISTAKES])
def test_mistake_gets_its_message(case: dict[str, Any]) -> None:
    """Each change gets the messages that stand beside it, and no others."""
    assert messages(changed(case["change"], case["to"])) == case["messages"]


def test_joins_that_hang_on_a_cycle_are_not_blamed() -> None:
    """A longer cycle is named once, and a join outside it has no message of its own."""
    tail = "right: legs, foreign_key: [tail, leg], how: left"
    joins = "".join(
        f"  {name}: {{left: {left}, {tail}, prefix: {name}_}}\n"
        for name, left in [("outside", "first"), ("first", "second"), ("second", "third"), ("third", "first")]
    )

    cycle = "these joins make a cycle: first → second → third → first; begin it with a table"
    assert messages(SOUND[: SOUND.index("  planned")] + joins) == [f"17: joins.first.left: {cycle}"]


@given(
    st.lists(
        st.tuples(
            st.integers(0, len(SOUND)),
            st.integers(0, 12),
            st.sampled_from(
                ["", "{", "}", "[", "]", ": ", ", ", "'", "\n", "\t", "&a ", "*a", "!x ", "~", "1", "("]
            ),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_garbled_file_yields_problems_only(edits: list[tuple[int, int, str]]) -> None:
    """Whatever a file holds, it is sound or has problems of one line each; nothing else is raised."""
    text = SOUND
    for start, removed, inserted in edits:
        text = text[:start] + inserted + text[start + removed :]

    assert all(message and "\n" not in message for message in messages(text))


def test_mistake_hides_no_other() -> None:
    """All problems of a file come together, by line; broken parts do not hide sound ones."""
    text = """\
name: Flights
tables:
  flights:
    source: {format: csv, path: "x/{day}"}
    columns: {id: bigint, fare: doubel, tail: string}
    key: [idd]
    sequence: [lsn]
  legs:
    source: {format: csv, path: legs.csv}
    columns: {tail: string}
    key: [tail]
joins:
  one: {left: flights, right: legs, foreign_key: [tial], how: left, prefx: a_}
  two: {left: one, right: nothing, foreign_key: [tail], how: lef}
"""
    places = [message.split(": ")[:2] for message in messages(text)]

    assert places == [
        ["1", "name"],
        ["1", "lake"],
        ["4", "tables.flights.source.path"],
        ["5", "tables.flights.columns.fare"],
        ["6", "tables.flights.key[0]"],
        ["7", "tables.flights.sequence[0]"],
        ["13", "joins.one.prefx"],
        ["13", "joins.one.foreign_key[0]"],
        ["14", "joins.two.how"],
        ["14", "joins.two.right"],
    ]


@pytest.mark.bad_input(32)
def test_secret_is_never_repeated() -> None:
    """No message shows a setting of Spark or a password in a URI, whatever is wrong with it."""
    text = changed("spark.sql.shuffle.partitions: 8", "fs.s3a.secret.key: hunter2, spark.x: [hunter2]")
    text = text.replace("./lake", "s3a://me:x/hunter2@bucket")

    assert len(messages(text)) == 3
    assert "hunter2" not in "".join(messages(text))


def test_block_style_shows_the_line_of_each_item() -> None:
    """In a file of one value a line, the message is on the line of the value itself."""
    text = changed("[tail, leg], how: left}", "\n    [\n    tail,\n    idd\n    ], how: left}")

    assert messages(text)[0].startswith("19: joins.planned.foreign_key[1]: ")


def test_file_is_named_as_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path stays relative in messages, so that they can be clicked."""
    monkeypatch.chdir(tmp_path)
    Path("pipelines").mkdir()
    Path("pipelines/bad.yaml").write_text(changed("how: left", "how: outer"), "utf-8")

    with pytest.raises(ConfigurationError) as caught:
        load("pipelines/bad.yaml")

    assert str(caught.value) == (
        "pipelines/bad.yaml:16: joins.planned.how: expected one of inner, left; found 'outer'"
    )
