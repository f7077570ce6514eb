"""Records that have no line of their own: several on one, over several, in lists; and what is refused of such files."""

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakejoin.storage.errors import SourceBroken, SourceChanged, SourceTooLarge
from lakejoin.storage.sources.files.limits import FileLimits
from lakejoin.storage.sources.files.source_files import FoundFile
from lakejoin.storage.sources.formats.jsonl import Jsonl
from lakejoin.storage.sources.planned.planned_file import PlannedFile
from lakejoin.transforms.model.schemas import CONTEXT, POSITION, RAW
from lakejoin.transforms.parsing.options import ParseOptions

FORM = Jsonl(one_per_line=False)
DEEP = '{"a":' * 80 + "1" + "}" * 80
LAYOUTS: list[tuple[str, list[str]]] = [
    ('{"id":1}\n{"id":2}\n', ['{"id":1}', '{"id":2}']),
    ('{"id":1}{"id":2} {"id":3},\n{"id":4}', ['{"id":1}', '{"id":2}', '{"id":3}', '{"id":4}']),
    ('[{"id":1},\n {"id":2}]\n[\n{"id":3}]', ['{"id":1}', '{"id":2}', '{"id":3}']),
    ('\ufeff[\n  {\n    "id": 1,\n    "t": "}]\\" {"\n  }\n]\n', ['{\n    "id": 1,\n    "t": "}]\\" {"\n  }']),
    ('{"id":1.10,"l":[{"m":[]}]} null 7 "x y" true', ['{"id":1.10,"l":[{"m":[]}]}', "null", "7", '"x y"', "true"]),
    # what is broken goes to the end of its line, and the next one counts anew
    ('{"id":1\n{"id":2}', ['{"id":1', '{"id":2}']),
    ('[{"id":1}, {"id":2]\n{"id":3}', ['{"id":1}', '{"id":2]', '{"id":3}']),
    ('{"id":1}} x\n"open\n{"id":2}', ['{"id":1}', "} x", '"open', '{"id":2}']),
    (f'{DEEP}\n{{"id":1}}', [DEEP, '{"id":1}']),
    ("", []),
    (" \n[ ]\n", []),
]  # fmt: skip


def part_of(found: FoundFile, spark: SparkSession) -> PlannedFile:
    """All records of a file."""
    return PlannedFile.behind(0, FORM.measure(found, None, spark), "t")


# https://github.com/apache/gobblin/issues/1099, https://github.com/apache/spark/pull/18731
def test_records_are_cut_out_of_every_layout(spark: SparkSession, write: Callable[..., FoundFile]) -> None:
    """Each as it is written, counted from 1 in its file; what is no record is a piece, too."""
    parts = [part_of(write(f"{n:02}.json", text.encode()), spark) for n, (text, _) in enumerate(LAYOUTS)]

    rows = FORM.lines(spark, ParseOptions("jsonl"), parts).orderBy(POSITION).collect()

    found = {part.name: [row[RAW] for row in rows if row[POSITION]["file"] == part.name] for part in parts}
    assert list(found.values()) == [records for _, records in LAYOUTS]
    assert [part.lines for part in parts] == [len(records) for _, records in LAYOUTS]
    places = [(row[POSITION]["file"], row[POSITION]["line"]) for row in rows]
    assert places == [(part.name, n + 1) for part in parts for n in range(part.lines)]


def test_part_of_a_packed_file_is_read_by_record(
    spark: SparkSession, write: Callable[..., FoundFile]
) -> None:
    """With the record before it as context, as lines are; bytes that are no UTF-8 stay as they are."""
    content = json.dumps([{"id": n, "name": "é"} for n in range(1, 10)], ensure_ascii=False).encode()
    whole = part_of(write("a b/x.json.gz", gzip.compress(content.replace("é".encode(), b"\xff", 1))), spark)

    part = replace(whole, from_line=1, to_line=3)
    rows = FORM.lines(spark, ParseOptions("jsonl"), [part]).orderBy(POSITION).collect()
    first = (
        FORM.lines(spark, ParseOptions("jsonl"), [replace(whole, to_line=1)])
        .selectExpr(f"hex({RAW})")
        .first()
    )

    assert [(row[POSITION]["line"], row[CONTEXT], json.loads(row[RAW])["id"]) for row in rows[1:]] == [
        (2, False, 2), (3, False, 3),
    ]  # fmt: skip
    assert rows[0][CONTEXT]
    assert first is not None
    assert bytes.fromhex(first[0]) == b'{"id": 1, "name": "\xff"}'


# https://github.com/alibaba/canal/issues/4091, https://github.com/alibaba/canal/issues/2525
def test_each_row_of_a_statement_is_a_record(spark: SparkSession, write: Callable[..., FoundFile]) -> None:
    """Beside its own former values, and all else that the record says."""
    form = Jsonl(one_per_line=False, lists=("data", "old"))
    text = (
        '{"data":[{"id":"1","t":"]"}, {"id":"2"}],"old":[{"t":"a"},{"t":"b"}],"type":"UPDATE"}\n'
        '{"data":[{"id":"3"},{"id":"4"}],"old":null}{"old":null,"data":[{"id":"5"}]}\n{"data":null,"sql":"[{},{}]"}\n'
    )
    part = PlannedFile.behind(0, form.measure(write("x.json", text.encode()), None, spark), "t")

    rows = form.lines(spark, ParseOptions("jsonl"), [part]).orderBy(POSITION).collect()

    assert [row[RAW] for row in rows] == [
        '{"data":[{"id":"1","t":"]"}],"old":[{"t":"a"}],"type":"UPDATE"}',
        '{"data":[{"id":"2"}],"old":[{"t":"b"}],"type":"UPDATE"}',
        '{"data":[{"id":"3"}],"old":null}',
        '{"data":[{"id":"4"}],"old":null}',
        '{"old":null,"data":[{"id":"5"}]}',
        '{"data":null,"sql":"[{},{}]"}',
    ]
    assert part.lines == len(rows)


def test_list_without_its_end_is_refused(spark: SparkSession, write: Callable[..., FoundFile]) -> None:
    """It may lack records, and nothing else would tell."""
    with pytest.raises(SourceBroken, match=r"x\.json: ends within a list that has no `\]`"):
        FORM.measure(write("x.json", b'[{"id":1},\n{"id":2}\n'), None, spark)


def test_file_that_is_read_whole_may_not_grow(spark: SparkSession, write: Callable[..., FoundFile]) -> None:
    """For what was its last piece may be another now."""
    known = FORM.measure(write("x.json", b'{"id":1} {"id":'), None, spark)

    with pytest.raises(SourceChanged, match="has grown, which only files of a record a line may"):
        FORM.measure(write("x.json", b'{"id":1} {"id":2}', modified=2), known, spark)
    assert FORM.measure(write("x.json", b'{"id":1} {"id":', modified=3), known).lines == known.lines


def test_file_that_is_read_whole_fits_memory(tmp_path: Path, write: Callable[..., FoundFile]) -> None:
    """Its lines may be short."""
    with pytest.raises(
        SourceTooLarge,
        match=r"x\.json: the file, with 2 bytes for each character, has 1,600 bytes, all in memory",
    ):
        FORM.measure(write("x.json", b'{"a":1}\n' * 100), None, None, FileLimits(memory=1_500))
