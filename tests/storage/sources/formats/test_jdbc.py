"""When dumps of a query are taken and read, how columns are asked for, and what is said where that fails."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, DataType, LongType, StringType, StructField, StructType

from lakejoin.storage.errors import SourceRefused, SourceUnreadable, without_credentials
from lakejoin.storage.sources.database import queries
from lakejoin.storage.sources.database.dumping import error_of, value_of
from lakejoin.storage.sources.database.dumps import dumps, name_of, pattern_of, remove, time_of
from lakejoin.storage.sources.formats import jdbc
from lakejoin.storage.sources.formats.jdbc import Jdbc
from lakejoin.storage.sources.formats.source_format import Look, SourceSpec
from lakejoin.storage.sources.planned.planned_file import Known, PlannedFile

URL = "jdbc:postgresql://db:5432/shop"
NOON = datetime(2026, 11, 28, 12, tzinfo=UTC)
DAY = timedelta(days=1)
ASKED = SparkSession.__new__(SparkSession)
"""Only says that a session is there."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of the dumps of a table, which is not there yet; its name has signs of patterns."""
    return tmp_path / "lake [1]" / "_dumps" / "customers"


def spec(folder: Path) -> SourceSpec:
    """A source whose dumps are in a folder."""
    columns = StructType([StructField("id", LongType())])
    return SourceSpec("customers", pattern_of(str(folder)), is_snapshot=True, columns=columns)


def format_of(every: timedelta = DAY) -> Jdbc:
    """A format that asks a table."""
    return Jdbc(queries.of_table(URL, "public.customers", every))


def land(folder: Path, time: datetime, *, whole: bool = True) -> Path:
    """Leave a dump as Spark leaves it."""
    dump = folder / name_of(time)
    dump.mkdir(parents=True)
    (dump / "part-00000.snappy.parquet").write_bytes(b"PAR1")
    (dump / ".part-00000.snappy.parquet.crc").touch()
    if whole:
        (dump / "_SUCCESS").touch()
    else:
        (dump / "_temporary" / "0").mkdir(parents=True)
    return dump


def read(*times: datetime) -> Known:
    """What plans say of dumps."""
    names = [f"{name_of(time)}/part-00000.snappy.parquet" for time in times]
    return {
        name: PlannedFile("customers", "", name, None, 4, 0, "", 1, complete=True, from_line=0, to_line=1)
        for name in names
    }


def waiting(folder: Path, known: Known, now: datetime, every: timedelta = DAY) -> list[str]:
    """What waits, by its names."""
    return [file.name for file in format_of(every).waiting(spec(folder), known, Look(now)).parts]


def test_dump_waits_when_it_is_due_or_not_read(folder: Path) -> None:
    """The first at once; then nothing until the time is over; one that was taken and not read, but only while new."""
    found = format_of().waiting(spec(folder), {}, Look(NOON))
    assert ([file.name for file in found.parts], str(found.dumped)) == (["the first"], "was never dumped")

    land(folder, NOON)
    name = f"{name_of(NOON)}/part-00000.snappy.parquet"
    assert waiting(folder, {}, NOON + DAY / 2) == [name]
    assert waiting(folder, read(NOON), NOON + DAY / 2) == []
    assert waiting(folder, read(NOON), NOON + DAY / 2, DAY / 2) == ["one due since 2026-11-29 00:00:00 UTC"]
    assert waiting(folder, {}, NOON + DAY) == ["one due since 2026-11-29 12:00:00 UTC"]
    told = format_of().waiting(spec(folder), read(NOON), Look(NOON)).dumped
    assert str(told) == "was dumped at 2026-11-28 12:00:00 UTC, next from 2026-11-29 12:00:00 UTC on"


def test_time_of_a_dump_is_known_when_its_files_are_gone(folder: Path) -> None:
    """By the plan that read it."""
    assert waiting(folder, read(NOON - DAY, NOON), NOON + DAY / 2) == []


def test_dump_that_was_cut_off_is_none(folder: Path) -> None:
    """It neither waits nor counts as taken; others are found beside it."""
    land(folder, NOON, whole=False)
    assert waiting(folder, {}, NOON) == ["the first"]
    land(folder, NOON - DAY / 2)
    assert waiting(folder, {}, NOON) == [f"{name_of(NOON - DAY / 2)}/part-00000.snappy.parquet"]


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Take dumps without a database; returns the names of those that were taken."""
    found: list[str] = []

    def take(_: object, __: object, columns: StructType, folder: str) -> None:
        assert columns.names == ["id"]
        found.append(Path(folder).name)
        land(Path(folder).parent, time_of(Path(folder).name))

    monkeypatch.setattr(jdbc, "take_dump", take)
    monkeypatch.setattr(jdbc._FILES, "measure", _measured)
    return found


def _measured(file: object) -> object:
    from lakejoin.storage.sources.files.source_files import MeasuredFile

    return MeasuredFile(**vars(file), fingerprint="", lines=1, complete=True)


def unread(folder: Path, known: Known, now: datetime, spark: SparkSession | None = ASKED) -> list[str]:
    """The dumps that are read next, after one was taken that was due."""
    return [part.name.partition("/")[0] for part in format_of().unread(spec(folder), known, Look(now), spark)]


def test_dump_is_taken_when_one_is_due_and_all_others_are_removed(folder: Path, taken: list[str]) -> None:
    """What was read, what is too old and what was cut off; nothing is taken without a session, or too early."""
    assert unread(folder, {}, NOON, None) == taken == []
    assert unread(folder, {}, NOON) == taken == [name_of(NOON)]
    assert unread(folder, {}, NOON + DAY / 2) == [name_of(NOON)] == taken
    assert unread(folder, read(NOON), NOON + DAY / 2) == []
    land(folder, NOON + DAY / 2, whole=False)
    assert unread(folder, read(NOON), NOON + DAY) == [name_of(NOON + DAY)]
    assert [dump.name for dump in dumps(str(folder))] == taken[1:] == [name_of(NOON + DAY)]


def test_dump_never_has_an_earlier_name_than_one_before(folder: Path, taken: list[str]) -> None:
    """A clock that went back would else make it an older snapshot."""
    every_run = Jdbc(queries.of_table(URL, "customers", timedelta()))
    list(every_run.unread(spec(folder), {}, Look(NOON), ASKED))
    known = read(NOON)
    assert list(every_run.unread(spec(folder), known, Look(NOON - DAY), ASKED)) == []  # not due by that clock
    list(every_run.unread(spec(folder), known, Look(NOON), ASKED))
    assert taken == [name_of(NOON), name_of(NOON + timedelta(microseconds=1))]


def test_refused_dump_is_discarded(folder: Path, taken: list[str]) -> None:
    """So the next run asks anew."""
    parts = list(format_of().unread(spec(folder), {}, Look(NOON), ASKED))
    format_of().discard(spec(folder), parts)
    assert dumps(str(folder)) == []
    assert unread(folder, {}, NOON + DAY / 4) == [name_of(NOON + DAY / 4)]
    assert len(taken) == 2


def test_dump_that_is_removed_halfway_is_not_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file that says so goes first."""
    land(folder, NOON)
    left = dumps(str(folder))

    class Ended(Exception):
        """The process ends here."""

    def end(*_: object) -> None:
        raise Ended

    class System:
        """Removes files, but no folders."""

        delete_file = staticmethod(lambda path: Path(path).unlink())
        delete_dir = staticmethod(end)

    monkeypatch.setattr(
        "lakejoin.storage.sources.database.dumps.open_file_system", lambda path: (System, path)
    )
    with pytest.raises(Ended):
        remove(str(folder), left)
    monkeypatch.undo()
    assert [dump.is_whole for dump in dumps(str(folder))] == [False]


@pytest.mark.parametrize(
    ("kind", "declared", "sql"),
    [
        ("int4", LongType(), '"a ""b"""'),
        ("bytea", StringType(), '"a ""b"""'),
        ("numeric", LongType(), '"a ""b"""::text'),
        ("timestamptz", StringType(), '"a ""b"""::text'),
        ("mood", StringType(), '"a ""b"""::text'),
        ("_int4", ArrayType(LongType()), 'to_json("a ""b""")::text'),
        ("_int4", StringType(), 'to_json("a ""b""")::text'),
        ("pair", StructType([StructField("x", LongType())]), 'to_json("a ""b""")::text'),
        ("jsonb", StructType([StructField("x", LongType())]), '"a ""b"""::text'),
    ],
)
def test_columns_are_asked_for_as_spark_leaves_them_alone(kind: str, declared: DataType, sql: str) -> None:
    """As they are, as text or as JSON."""
    column = StructField('a "b"', StringType(), metadata={"jdbcClientType": kind})
    assert value_of(column, declared) == sql


@pytest.mark.parametrize(
    ("code", "kind", "said"),
    [
        ("28P01", SourceUnreadable, "refuses the login (no): expected"),
        ("42P01", SourceRefused, "cannot answer (no)"),
        ("3D000", SourceRefused, "cannot answer (no)"),
        ("08001", SourceUnreadable, "does not answer (no)"),
        ("", SourceUnreadable, "does not answer (no)"),
        ("22012", SourceUnreadable, "broke off its answer (no)"),
    ],
)
def test_what_a_driver_says_is_told_in_plain_words(code: str, kind: type[Exception], said: str) -> None:
    """By its code."""
    error = error_of(queries.of_select(URL, "select 1;", DAY), code, ["no"])
    assert isinstance(error, kind)
    assert str(error).startswith(f"{URL}: {said}".replace("): ", "); "))


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({}, {}),
        (
            {"LAKEJOIN_JDBC_USERNAME": "ada", "LAKEJOIN_JDBC_PASSWORD": "hush"},
            {"user": "ada", "password": "hush"},
        ),
    ],
)
def test_login_comes_from_the_environment(environment: dict[str, str], said: dict[str, str]) -> None:
    """If it is there; a database may ask for none."""
    asked = queries.of_table(URL, "customers", DAY)
    options = queries.spark_options(asked, environment)
    assert {name: options[name] for name in ("user", "password") if name in options} == said
    assert "hush" not in repr(asked)


def test_query_may_end_in_a_comment_or_a_semicolon() -> None:
    """What stands behind it is not swallowed."""
    made: Callable[[str], str] = lambda sql: queries.of_select(URL, sql, DAY).rows  # noqa: E731 - short
    assert made("select 1; ") == "(select 1\n)"
    assert made("select 1 -- all") == "(select 1 -- all\n)"


def test_message_shows_no_password_of_a_url() -> None:
    """Where one was written into the file though it may not."""
    text = without_credentials(f"found '{URL}?user=ada&sslmode=require&password=hush'")
    assert text == f"found '{URL}?user=…&sslmode=require&password=…"
