"""Runs `lakejoin init`: writes a first configuration file, from samples or as a template."""

import os.path
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from lakejoin.orchestration.cli.terminal import complain, print_table, say
from lakejoin.transforms.model.printable_text import printable

if TYPE_CHECKING:
    from lakejoin.orchestration.config import Pipeline
    from lakejoin.orchestration.proposals.proposal import Proposal
    from lakejoin.orchestration.proposals.tables import Table

FILE = "lakejoin.yaml"
IGNORED = "/lake/\n/.dagster*/\n"
"""What a run leaves behind: the lake, which holds Dagster's records, too, or these where the lake is at a URI."""
_NONE = "-"
"""What is answered for nothing."""


class ManyFiles(TyperCommand):
    """Takes all that stands behind `--from` up to the next option, as a shell writes a pattern out."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse with `--from` before each of its files."""
        written: list[str] = []
        is_open = False
        for argument in args:
            if is_open and not argument.startswith("-") and written[-1] != "--from":
                written.append("--from")
            is_open = argument == "--from" or (is_open and not argument.startswith("-"))
            written.append(argument)
        return super().parse_args(ctx, written)


def init(
    folder: Annotated[
        Path,
        typer.Argument(
            help="Where the file is written; it stands before --from.", metavar="[FOLDER]", file_okay=False
        ),
    ] = Path(),
    samples: Annotated[
        list[str] | None,
        typer.Option(
            "--from", metavar="FILES…", help="Files or folders with change data, or a pattern in quotes."
        ),
    ] = None,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Take all that is proposed without a question.")] = False,
) -> None:
    """Write a first lakejoin.yaml, by samples of data.

    The first records of some files say which tables there are, with columns, types, keys, order and joins. Whatever is
    guessed is asked, and a comment in the file says why. Without samples it is a small file to change by hand. One that
    is there is never written over.
    """
    from lakejoin.orchestration.config import load, load_text
    from lakejoin.orchestration.errors import WrongUsage
    from lakejoin.orchestration.proposals.names import table_name
    from lakejoin.orchestration.proposals.yaml_text import template, text_of

    path = folder / FILE
    if path.exists() or path.is_symlink():
        raise WrongUsage(
            f"{path}: is there already, and is not written over; name another folder, or move it away"
        )
    name = table_name(folder.absolute().name or "lakejoin")
    if samples:
        proposal = _asked(samples, folder, taken=yes)
        text = text_of(proposal, _editor(folder), name)
    else:
        text = template(_editor(folder), str(path), name)
    load_text(text, path)
    folder.mkdir(parents=True, exist_ok=True)
    with path.open("x", encoding="utf-8") as file:
        file.write(text)
    pipeline = load(path)
    say(f"{path}: {', '.join([*pipeline.tables, *pipeline.joins])}")
    _write_tests(pipeline)
    _ignore(folder / ".gitignore")
    if samples:
        say(f"Read its comments. Next: lakejoin run {shlex.quote(str(path))}")
    else:
        say(f"Put your own tables into it. Next: lakejoin validate {shlex.quote(str(path))}")


def _asked(samples: list[str], folder: Path, *, taken: bool) -> "Proposal":
    """What the samples say, as far as the user wants it. Raises `WrongUsage` where no table is left."""
    from lakejoin.orchestration.errors import WrongUsage
    from lakejoin.orchestration.proposals.locating import files_at
    from lakejoin.orchestration.proposals.proposal import completed, proposed_tables
    from lakejoin.orchestration.proposals.reading import read_sample

    files = files_at(samples, folder)
    tables, left_out = proposed_tables(files, lambda name: read_sample(files[name]))
    if not taken:
        tables = [answered for table in tables if (answered := _table_wanted(table)) is not None]
    proposal = completed(tables, left_out)
    for line in proposal.left_out:
        complain(f"left out: {line}")
    if not proposal.tables:
        raise WrongUsage(
            "no table is left to declare; write a template by `lakejoin init` without --from, and fill it in"
        )
    if taken:
        return proposal
    return replace(
        proposal, joins=[join for join in proposal.joins if _wanted(f"Join {join.name}: {join.note}?")]
    )


def _wanted(question: str) -> bool:
    return typer.confirm(printable(question), default=True)


def _table_wanted(table: "Table") -> "Table | None":
    """The table with the key and sequence that the user says; None where it is not wanted."""
    say("")
    rows = [(name, column.type, column.note) for name, column in table.columns.items()]
    print_table(
        f"{table.source['path']}: {table.source['format']}, {len(table.rows):,} rows seen",
        ("column", "type", ""),
        rows,
    )
    if not table.columns or not _wanted(f"Declare it as table {table.name}?"):
        return None
    key = _columns_said("Its key", table, table.key, table.notes.get("key", ""))
    sequence: str | tuple[str, ...] = table.sequence
    if sequence != "source":
        said = "What orders the changes of a row (- for the order of the files)"
        sequence = _columns_said(said, table, table.sequence, table.notes.get("sequence", ""))
    notes = {
        **table.notes,
        **({"key": ""} if key != table.key else {}),
        **({"sequence": ""} if sequence != table.sequence else {}),
    }
    return replace(table, key=key, sequence=sequence, notes=notes)


def _columns_said(
    question: str, table: "Table", proposed: str | tuple[str, ...], why: str
) -> tuple[str, ...]:
    """Ask for columns until all of them are ones of the table."""
    from lakejoin.orchestration.config.problems import listed

    default = printable(", ".join(proposed) or _NONE)
    while True:
        answer = typer.prompt(printable(f"{question}{f' ({why})' if why else ''}"), default=default)
        if answer == default:
            return tuple(proposed)
        names = tuple(name.strip() for name in answer.split(",") if name.strip() not in {"", _NONE})
        if unknown := [name for name in names if name not in table.columns]:
            complain(f"no column {unknown[0]!r}; known: {listed(list(table.columns))}")
            continue
        return names


def _editor(folder: Path) -> str:
    """The line by which editors find the schema of the file, by a relative path where it lies below the folder."""
    from lakejoin.orchestration.config.docs import reference

    schema = reference.SCHEMA_FILE.resolve()
    top = folder.absolute().resolve()
    written = os.path.relpath(schema, top) if schema.is_relative_to(top) else str(schema)
    return f"# yaml-language-server: $schema={printable(written, None)}"


def _write_tests(pipeline: "Pipeline") -> None:
    """Write two unit tests to begin with, unless there are some already."""
    from lakejoin.orchestration.unit_tests.declared import file_of_tests
    from lakejoin.orchestration.unit_tests.examples import example_tests

    path, text = file_of_tests(pipeline), example_tests(pipeline)
    if text is not None and not path.exists():
        path.write_text(text, encoding="utf-8")
        say(f"{path}: two unit tests, for `lakejoin test`")


def _ignore(path: Path) -> None:
    """Keep what a run leaves behind out of Git; where there is a file already, say what it lacks."""
    lines = IGNORED.splitlines()
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(IGNORED)
    except FileExistsError:
        known = path.read_text(encoding="utf-8", errors="replace").splitlines()
        if missing := [line for line in lines if line not in known]:
            say(f"{path}: is there already; add {' and '.join(missing)} to it")
