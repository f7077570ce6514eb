"""A sound configuration: defaults, resolved paths, what the stages get, what the fingerprint covers."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType, TimestampType

from lakejoin.orchestration.config import ConfigurationError, Pipeline, load, load_text
from lakejoin.orchestration.config.schema.operation import DeclaredOperation, Operation
from lakejoin.storage.sources.files.limits import FileLimits
from lakejoin.storage.sources.files.source_files import find_files
from lakejoin.transforms.model.schemas import POSITION_TYPE
from lakejoin.transforms.model.specs import JoinSpec, TableSpec
from lakejoin.transforms.parsing.row_ops import PRESETS, RowOp

TEXT = """\
name: flights
lake: lake
tables:
  flights:
    source:
      format: debezium
      path: data/{date}.jsonl.gz
      time: millis
      timezone: Europe/Berlin
      settle: 1.5 minutes
      file_order: number
      one_per_line: false
      start: 2013-01-02
      limits: {file: 1.5 GB, line: 20 kB, depth: 50, ratio: 20, memory: 1 GB}
      on_schema_change: fail
      tables: [public.flights, flights_*]
      absent: keep
      snapshots: oldest
      infinity: max
      trust_sequence: true
      strict: true
    columns: {id: bigint, "tail-num": string, at: {type: timestamp, as: micros, from: AT}, ts_ms: int}
    key: [id]
    sequence: [at, lsn, ts_ms]
    event_time: at
    tombstone_retention: 2 hours
    on_truncate: delete
    max_bad_ratio: 0.25
  planes:
    source: {format: jsonl, path: ../planes/*.jsonl}
    columns: {"tail-num": string, seats: int}
    key: ["tail-num"]
joins:
  twice: {left: once, right: planes, foreign_key: ["upper(`right_tail-num`)"], how: inner, prefix: again_}
  lonely:
    {left: planes, right: planes, foreign_key: ["split(`tail-num`, ',')[0]"], how: left, changelog: true}
  once: {left: flights, right: planes, foreign_key: ["tail-num"], how: left}
"""


def pipeline(text: str = TEXT, path: str = "/etc/pipelines/flights.yaml") -> Pipeline:
    """The pipeline of a text, as if it stood in that file."""
    return load_text(text, path)


def test_every_value_is_taken_over() -> None:
    """What the file says is in the model, typed."""
    table = pipeline().tables["flights"]

    assert table.name == "flights"
    assert table.source.model_dump() == {
        "format": "debezium",
        "path": "/etc/pipelines/data/{date}.jsonl.gz",
        "bootstrap_servers": None,
        "topic": (),
        "value": None,
        "registry": None,
        "security": None,
        "time": "millis",
        "timezone": "Europe/Berlin",
        "tables": ("public.flights", "flights_*"),
        "absent": "keep",
        "snapshots": "oldest",
        "csv": None,
        "epochs": (),
        "mode": "changes",
        "max_deleted": 0.5,
        "url": None,
        "table": None,
        "query": None,
        "every": timedelta(days=1),
        "infinity": "max",
        "op": None,
        "trust_sequence": True,
        "settle": timedelta(seconds=90),
        "file_order": "number",
        "one_per_line": False,
        "start": date(2013, 1, 2),
        "limits": {"file": 1_500_000_000, "line": 20_000, "depth": 50, "ratio": 20, "memory": 1_000_000_000},
        "on_schema_change": "fail",
        "strict": True,
    }
    options = table.source.parse_options
    assert (options.max_line, options.max_depth) == (20_000, 50)
    assert table.source.file_limits == FileLimits(file=1_500_000_000, ratio=20, memory=1_000_000_000)
    types = {name: column.type for name, column in table.columns.items()}
    assert types == {"id": "bigint", "tail-num": "string", "at": "timestamp", "ts_ms": "int"}
    assert (table.columns["at"].encoding, table.columns["at"].source_name) == ("micros", "AT")
    assert (table.parse_options.of_column("at").time, table.parse_options.time) == ("micros", "millis")
    assert table.spec.written == {"at": "AT"}
    assert (table.key, table.sequence, table.event_time) == (("id",), ("at", "lsn", "ts_ms"), "at")
    assert table.tombstone_retention == timedelta(hours=2)
    assert (table.on_truncate, table.max_bad_ratio) == ("delete", 0.25)


def test_operation_is_a_preset_with_what_goes_before_it() -> None:
    """A preset alone, a preset of another column, and a column whose values may all bring parts of rows."""
    alone = TypeAdapter(DeclaredOperation).validate_python("dms")
    other = Operation(preset="dms", column="change", default="delete")
    own = Operation(column="kind", upsert=("new",), delete=("old",))
    named = Operation(column="__op")

    assert alone.row_op == PRESETS["dms"]
    assert other.row_op == replace(PRESETS["dms"], column="change", default="delete")
    assert own.row_op == RowOp("kind", ("new",), ("old",), insert=())
    assert named.row_op == RowOp("__op")


def test_what_is_left_out_has_its_default() -> None:
    """A table and a join need little; the rest is as the reference says."""
    planes, once = pipeline().tables["planes"], pipeline().joins["once"]

    assert planes.source.model_dump(exclude={"format", "path"}) == {
        "bootstrap_servers": None,
        "topic": (),
        "value": None,
        "registry": None,
        "security": None,
        "mode": "changes",
        "max_deleted": 0.5,
        "url": None,
        "table": None,
        "query": None,
        "every": timedelta(days=1),
        "time": "micros",
        "timezone": None,
        "tables": (),
        "absent": None,
        "snapshots": None,
        "csv": None,
        "epochs": (),
        "infinity": "quarantine",
        "op": None,
        "trust_sequence": False,
        "settle": None,
        "file_order": None,
        "one_per_line": True,
        "start": None,
        "limits": {"file": 10**12, "line": 100_000_000, "depth": 998, "ratio": 1000, "memory": 256_000_000},
        "on_schema_change": "ignore",
        "strict": False,
    }
    assert (planes.sequence, planes.event_time, planes.tombstone_retention) == ((), None, timedelta(days=30))
    assert (planes.on_truncate, planes.max_bad_ratio) == ("stop", 1.0)
    assert (once.name, once.prefix, once.changelog) == ("once", "right_", False)
    assert (once.resolution, once.result_key) == ("hash", "left")
    assert pipeline().spark.model_dump() == {"master": "local[*]", "conf": {}}


def test_pipeline_of_tables_alone_is_sound() -> None:
    """Joins may come later."""
    assert pipeline(TEXT[: TEXT.index("joins:")]).joins == {}


def test_relative_paths_start_from_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The directory of the file counts, not the one that the command was started in; it is no pattern itself."""
    folder = tmp_path / "pipelines[1]" / "*{date}"
    folder.mkdir(parents=True)
    (folder / "flights.yaml").write_text(TEXT.replace("lake: lake", "lake: ../../lake"), "utf-8")
    (folder.parent / "planes").mkdir()
    (folder.parent / "planes" / "a.jsonl").touch()
    monkeypatch.chdir(tmp_path)

    found = load("pipelines[1]/*{date}/flights.yaml")
    source = found.tables["planes"].source

    assert found.path == folder / "flights.yaml"
    assert found.lake == str(tmp_path / "lake")
    assert source.place == str(folder.parent / "planes" / "*.jsonl")
    assert found.tables["flights"].source.place == str(folder / "data" / "{date}.jsonl.gz")
    assert [file.name for file in find_files(source.path, settle=timedelta(0), now=datetime.now(UTC))] == [
        "a.jsonl"
    ]
    assert load(folder / "flights.yaml") == found


@pytest.mark.parametrize(
    ("lake", "expected"),
    [
        ("lake", "/etc/pipelines/lake"),
        ("./lake/", "/etc/pipelines/lake"),
        ("../lake", "/etc/lake"),
        (".", "/etc/pipelines"),
        ("/var/lake", "/var/lake"),
        ("s3a://bucket/lake/", "s3a://bucket/lake"),
        ("gs://bucket", "gs://bucket"),
        ("hdfs:///lake", "hdfs:///lake"),
        ("hdfs://name:8020/me@home:x", "hdfs://name:8020/me@home:x"),
        ("abfss://box@account.dfs.core.windows.net/x", "abfss://box@account.dfs.core.windows.net/x"),
    ],
)
def test_lake_is_a_directory_or_a_uri(lake: str, expected: str) -> None:
    """Directories become absolute, URIs stay."""
    assert pipeline(TEXT.replace("lake: lake", f"lake: {lake}")).lake == expected


def test_lake_that_is_a_file_is_refused(tmp_path: Path) -> None:
    """A lake may not exist yet, but what exists must be a directory."""
    (tmp_path / "lake").touch()

    with pytest.raises(ConfigurationError, match="2: lake: is a file; a lake is a directory"):
        pipeline(TEXT, str(tmp_path / "x.yaml"))


def test_lake_below_a_directory_that_may_not_be_entered_is_left_to_whoever_opens_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The configuration is right; that the user has no right there is told with the lake's place."""

    def refused(path: Path, **_: object) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_file", refused)
    assert pipeline(TEXT, str(tmp_path / "lakejoin.yaml")).lake == str(tmp_path / "lake")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("500 milliseconds", timedelta(milliseconds=500)),
        ("1 millisecond", timedelta(milliseconds=1)),
        ("0.5 milliseconds", timedelta(microseconds=500)),
        ("0 seconds", timedelta()),
        ("90 minutes", timedelta(minutes=90)),
        ("2 hours", timedelta(hours=2)),
        ("30days", timedelta(days=30)),
        ("36500 days", timedelta(days=36500)),
    ],
)
def test_duration_is_a_number_and_a_unit(text: str, expected: timedelta) -> None:
    """Units go from milliseconds to days."""
    table = pipeline(TEXT.replace("2 hours", text)).tables["flights"]

    assert table.tombstone_retention == expected


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "'+02:00'", "'-18:00'"])
def test_zone_is_a_name_or_an_offset(zone: str) -> None:
    """Both are what Spark takes."""
    assert pipeline(TEXT.replace("Europe/Berlin", zone)).tables["flights"].source.timezone == zone.strip("'")


def test_settings_of_spark_become_text() -> None:
    """Spark takes text only; numbers and truth values need no quotes."""
    text = "spark: {master: 'spark://host:7077', conf: {spark.a: 8, spark.b: true, spark.c: x}}\n"

    spark = pipeline(TEXT + text).spark

    assert spark.master == "spark://host:7077"
    assert spark.conf == {"spark.a": "8", "spark.b": "true", "spark.c": "x"}


def test_table_spec_has_types_in_declared_order() -> None:
    """A declared column hides the envelope's value of its name; the envelope's values are whole numbers."""
    columns = StructType(
        [
            StructField("id", LongType()),
            StructField("tail-num", StringType()),
            StructField("at", TimestampType()),
            StructField("ts_ms", IntegerType()),
        ]
    )
    sequence = StructType([columns["at"], StructField("lsn", LongType()), columns["ts_ms"]])

    expected = TableSpec("flights", columns, ("id",), sequence, "at", written={"at": "AT"})
    assert pipeline().tables["flights"].spec == expected
    assert pipeline().tables["planes"].spec.sequence == POSITION_TYPE


def test_join_spec_resolves_both_sides() -> None:
    """A foreign key of a plain column is quoted, so that any name is one expression."""
    found = pipeline()
    flights, planes = found.tables["flights"].spec, found.tables["planes"].spec

    assert found.join_spec("once") == JoinSpec(
        name="once",
        left="flights",
        right="planes",
        left_columns=flights.columns,
        left_key=("id",),
        right_columns=planes.columns,
        right_key=("tail-num",),
        foreign_key=("`tail-num`",),
        how="left",
    )


def test_join_spec_over_a_join_has_its_columns() -> None:
    """The left side of the second join is the joined table of the first, with the first's key."""
    once, twice = pipeline().join_spec("once"), pipeline().join_spec("twice")

    assert twice.left_columns == once.columns
    assert twice.left_key == ("id",)
    assert twice.foreign_key == ("upper(`right_tail-num`)",)
    assert twice.columns.names == [
        *["id", "tail-num", "at", "ts_ms", "right_tail-num", "right_seats"],
        *["again_tail-num", "again_seats"],
    ]
    assert pipeline().join_spec("lonely").changelog


def test_combined_key_is_the_right_key_before_the_left_one() -> None:
    """Under the names of the joined table; a join over it has both as its left key."""
    variant = "how: inner, result_key: combined, resolution: highwater}"
    assert TEXT.endswith("how: left}\n")

    found = pipeline(TEXT.removesuffix("how: left}\n") + variant)

    assert found.join_spec("once").joined_key == ("right_tail-num", "id")
    assert found.join_spec("once").resolution == "highwater"
    assert found.join_spec("twice").left_key == ("right_tail-num", "id")
    assert found.join_spec("twice").joined_key == ("right_tail-num", "id")
    assert found.join_spec("twice").primary_key_type == found.join_spec("once").joined_key_type


def test_joins_come_after_their_left_sides() -> None:
    """Joins are in an order in which they can be run, as declared where that leaves a choice."""
    assert list(pipeline().joins) == ["once", "twice", "lonely"]


def test_long_chain_of_joins_is_ordered() -> None:
    """A chain declared backwards is turned round."""
    joins = [
        f"  j{n}: {{left: {f'j{n - 1}' if n else 'planes'}, right: planes, how: left, prefix: p{n}_, "
        "foreign_key: [tail-num]}\n"
        for n in range(30)
    ]

    found = pipeline(TEXT[: TEXT.index("  twice")] + "".join(reversed(joins)))

    assert list(found.joins) == [f"j{n}" for n in range(30)]


def test_expression_of_open_type_waits_for_spark() -> None:
    """What could not be typed is told, with its join."""
    assert pipeline().unchecked_expressions == [("lonely", "split(`tail-num`, ',')[0]")]


def test_column_named_like_an_expression_is_that_column() -> None:
    """A text that is the name of a column is never read as SQL."""
    text = TEXT.replace('"tail-num": string, at', '"tail-num": string, "a-b": string, at')

    found = pipeline(text.replace('["tail-num"], how: left}', "[a-b], how: left}"))

    assert found.join_spec("once").foreign_key == ("`a-b`",)


def test_model_cannot_be_changed() -> None:
    """A configuration that was checked stays as it was checked."""
    with pytest.raises(ValidationError, match="frozen"):
        pipeline().name = "other"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("lake: lake", "lake: s3a://other/lake"),
        ("path: data/{date}.jsonl.gz", "path: elsewhere/{date}.jsonl.gz"),
        ("settle: 1.5 minutes", "settle: 1 day"),
        ("start: 2013-01-02", "start: 2014-01-02"),
        ("max_bad_ratio: 0.25", "max_bad_ratio: 0.5"),
        ("id: bigint", "id: long"),
        ("joins:", "spark: {master: 'local[1]'}\njoins:"),
        ("how: left}", "how: left, prefix: right_, resolution: hash}"),
        ("how: left}", "how: left, max_dangling: 1 %}"),
        ("tombstone_retention: 2 hours", "tombstone_retention: 120 minutes"),
    ],
)
def test_fingerprint_stays_when_the_state_is_shaped_alike(old: str, new: str) -> None:
    """Places, limits of a run and other spellings of the same change nothing."""
    assert old in TEXT
    assert pipeline(TEXT.replace(old, new)).fingerprint == pipeline().fingerprint


def test_share_that_may_dangle_is_no_shape_of_a_star() -> None:
    """It may change without a rebuild, as that of any join, and is there to be read."""
    side = '{table: planes, foreign_key: ["tail-num"], how: left'
    stars = [
        f"{TEXT}  star: {{left: flights, rights: {{plane: {side}{more}}}}}}}\n"
        for more in ("", ", max_dangling: 0.1")
    ]
    without, declared = map(pipeline, stars)

    assert declared.fingerprint == without.fingerprint
    assert (
        without.joins["star"].max_dangling_of("plane"),
        declared.joins["star"].max_dangling_of("plane"),
    ) == (None, 0.1)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("name: flights", "name: other"),
        ("seats: int", "seats: bigint"),
        ("seats: int", "seats: int, model: string"),
        ("key: [id]", "key: [id, at]"),
        ("sequence: [at, lsn, ts_ms]", "sequence: [lsn, at, ts_ms]"),
        ("    event_time: at\n", ""),
        ("tombstone_retention: 2 hours", "tombstone_retention: 3 hours"),
        ("on_truncate: delete", "on_truncate: stop"),
        ("format: jsonl", "format: csv"),
        ("time: millis", "time: micros"),
        ("timezone: Europe/Berlin", "timezone: UTC"),
        ("how: inner", "how: left"),
        ("prefix: again_", "prefix: other_"),
        ("changelog: true", "changelog: false"),
        ('["upper(`right_tail-num`)"]', '["lower(`right_tail-num`)"]'),
        ("    {left: planes", "    {left: flights"),
    ],
)
def test_fingerprint_changes_with_what_shapes_the_state(old: str, new: str) -> None:
    """Keys, types, order of changes, rules and joins are all in it."""
    assert old in TEXT
    assert pipeline(TEXT.replace(old, new)).fingerprint != pipeline().fingerprint
