"""Input that can be read in two ways is refused before the plan, and read as meant once the user has said what that is.

Each case came from a public report: what it would silently have become is named beside it.
"""

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from faults.shop import make_pipeline, run, write_lines
from lakejoin.orchestration.planning.ambiguous_input import AmbiguousInput
from lakejoin.storage.errors import SourceRefused
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import QUARANTINE, Lake, changes_of
from lakejoin.storage.sources.reader import read_records
from lakejoin.storage.spark.kept_frames import SMALL

pytestmark = pytest.mark.spark

FILE = """\
name: shop
lake: ./lake
tables:
  orders:
    source: {{format: {form}, path: "orders/*.jsonl"{source}}}
    columns: {{{columns}}}
    key: [id]
{order}"""


def _declare(columns: str, source: str = "", order: str = "", form: str = "debezium") -> str:
    """The file of a pipeline of one table."""
    more = f", {source}" if source else ""
    return FILE.format(columns=columns, source=more, order=f"    {order}\n" if order else "", form=form)


def _event(after: dict[str, Any] | None, op: str = "c", **source: Any) -> dict[str, Any]:
    """An event of Debezium's: the row after it, and where it comes from."""
    return {"op": op, "before": None, "after": after, "ts_ms": 1_700_000_000_000, "source": source}


def _refused(folder: Path, text: str, spark: SparkSession) -> str:
    """The message with which a run refuses its input; nothing is planned."""
    pipeline = make_pipeline(folder, text)
    with pytest.raises(AmbiguousInput) as refused:
        run(pipeline, spark)
    assert Journal(Lake(pipeline.lake)).plans == []
    return str(refused.value)


def _rows(folder: Path, text: str, spark: SparkSession, column: str = "v") -> dict[Any, Any]:
    """The last value of each key that lives, in the table `orders` after a run."""
    pipeline = make_pipeline(folder, text)
    run(pipeline, spark)
    lake = Lake(pipeline.lake)
    changes = (
        spark.read.format("delta")
        .load(lake.path(changes_of("orders")))
        .orderBy("_lj_sequence", "_lj_position")
    )
    last = {row["id"]: row for row in changes.where("_lj_verdict = 'applied'").collect()}
    return {key: row[column] for key, row in last.items() if row["_lj_op"] != "delete"}


def _write(folder: Path, lines: Sequence[dict[str, Any]], name: str = "1") -> None:
    write_lines(folder / "orders" / f"{name}.jsonl", lines)


@pytest.mark.parametrize(
    "dtype",
    ["decimal(12,2)", *[pytest.param(dtype, marks=pytest.mark.slow) for dtype in ("double", "bigint")]],
)
def test_number_in_quotes_that_is_base64_as_well(dtype: str, tmp_path: Path, spark: SparkSession) -> None:
    """Debezium's default decimals: `1234` would have become 1234.00, `12E3` 12000.00, `2000` 2000.00."""
    texts = {1: "MDk=", 2: "1234", 3: "12E3", 4: "2000"}
    _write(tmp_path, [_event({"id": key, "v": text}) for key, text in texts.items()])
    said = _refused(tmp_path, _declare(f'id: bigint, v: "{dtype}"'), spark)
    assert (
        'in 3 records column v holds what is a number in digits, and in base64 another, such as "1234"'
        in said
    )
    assert "0 others are only digits, 1 only base64" in said
    assert f'`v: {{type: "{dtype}", as: precise}}`' in said
    assert "(first in 1.jsonl:2)" in said
    rows = _rows(tmp_path, _declare(f'id: bigint, v: {{type: "{dtype}", as: precise}}'), spark)
    unscaled = {1: 12345, 2: 0xD76DF8 - 0x1000000, 3: 0xD76137 - 0x1000000, 4: 0xDB4D34 - 0x1000000}
    scale = Decimal(100) if dtype.startswith("decimal") else Decimal(1)
    assert {key: Decimal(str(value)) for key, value in rows.items()} == {
        k: n / scale for k, n in unscaled.items()
    }


def test_digits_in_quotes_are_read_where_others_show_that_they_are_digits(
    tmp_path: Path, spark: SparkSession
) -> None:
    """With `decimal.handling.mode: string` some numbers happen to be base64, and most are not."""
    _write(tmp_path, [_event({"id": 1, "v": "1234"}), _event({"id": 2, "v": "12.50"})])
    assert _rows(tmp_path, _declare('id: bigint, v: "decimal(12,2)"'), spark) == {
        1: Decimal(1234),
        2: Decimal("12.5"),
    }


def test_digits_in_quotes_that_are_meant(tmp_path: Path, spark: SparkSession) -> None:
    """`as: string` says so."""
    _write(tmp_path, [_event({"id": 1, "v": "1234"})])
    assert "as: string" in _refused(tmp_path, _declare("id: bigint, v: int"), spark)
    assert _rows(tmp_path, _declare("id: bigint, v: {type: int, as: string}"), spark) == {1: 1234}


def test_schema_beside_the_event_is_an_answer(tmp_path: Path, spark: SparkSession) -> None:
    """Base64 that looks like digits, digits that look like base64, and milliseconds: nobody has to be asked."""
    decimal = {"name": "org.apache.kafka.connect.data.Decimal", "type": "bytes", "parameters": {"scale": "2"}}
    millis = {"name": "io.debezium.time.Timestamp", "type": "int64"}
    fields = [
        {"field": "v", **decimal}, {"field": "w", "type": "string"}, {"field": "x", **millis},
    ]  # fmt: skip
    schema = {"type": "struct", "fields": [{"field": "after", "type": "struct", "fields": fields}]}
    row = {"id": 1, "v": "1234", "w": "1234", "x": 1718454896000}
    _write(tmp_path, [{"schema": schema, "payload": _event(row)}])
    text = _declare('id: bigint, v: "decimal(12,2)", w: int, x: timestamp')

    assert _rows(tmp_path, text, spark) == {1: Decimal(0xD76DF8 - 0x1000000) / 100}
    changes = spark.read.format("delta").load(Lake(f"{tmp_path}/lake").path(changes_of("orders")))
    assert [tuple(found) for found in changes.selectExpr("w", "cast(x as string)").collect()] == [
        (1234, "2024-06-15 12:34:56")
    ]


def test_times_of_three_units_in_a_row(tmp_path: Path, spark: SparkSession) -> None:
    """MySQL's `datetime`, `datetime(6)` and SQL Server's `datetime2(7)`: two would have been of January 1970."""
    row = {"id": 1, "v": 1718454896000, "w": 1718454896123456, "x": 1718454896123456700}
    _write(tmp_path, [_event(row)])
    said = _refused(tmp_path, _declare("id: bigint, v: timestamp, w: timestamp, x: timestamp"), spark)
    assert '1 of 1 times in column v, such as "1718454896000"' in said
    assert '1 of 1 times in column x, such as "1718454896123456700"' in said
    assert "column w" not in said
    meant = _declare(
        "id: bigint, v: {type: timestamp, as: millis}, w: timestamp, x: {type: timestamp, as: nanos}"
    )
    pipeline = make_pipeline(tmp_path, meant)
    run(pipeline, spark)
    changes = spark.read.format("delta").load(Lake(pipeline.lake).path(changes_of("orders")))
    [found] = changes.selectExpr(
        "cast(v as string) v", "cast(w as string) w", "cast(x as string) x"
    ).collect()
    assert tuple(found) == ("2024-06-15 12:34:56", *["2024-06-15 12:34:56.123456"] * 2)


def test_few_early_times_are_data(tmp_path: Path, spark: SparkSession) -> None:
    """One of 200 times in January 1970, and zeros, which are the same by every unit, are no question."""
    times = [1_700_000_000_000_000 + key for key in range(200)] + [1_000_000, 0, 0, 0]
    _write(tmp_path, [_event({"id": key, "v": time}) for key, time in enumerate(times)])
    rows = _rows(tmp_path, _declare("id: bigint, v: timestamp"), spark)
    assert (rows[200], rows[201]) == (datetime(1970, 1, 1, 0, 0, 1), datetime(1970, 1, 1))  # noqa: DTZ001


def test_hexadecimal_that_is_base64_as_well(tmp_path: Path, spark: SparkSession) -> None:
    """`binary.handling.mode: hex`: `deadbeef` would have been decoded as base64."""
    _write(tmp_path, [_event({"id": 1, "v": "deadbeef"})])
    said = _refused(tmp_path, _declare("id: bigint, v: binary"), spark)
    assert 'in 1 records column v holds what is base64, and hexadecimal as well, such as "deadbeef"' in said
    assert _rows(tmp_path, _declare("id: bigint, v: {type: binary, as: hex}"), spark) == {
        1: bytearray.fromhex("deadbeef")
    }


def test_base64_that_is_safe_in_urls(tmp_path: Path, spark: SparkSession) -> None:
    """`binary.handling.mode: base64-url-safe`: `-__-` was quarantined."""
    _write(
        tmp_path,
        [_event({"id": 1, "v": "-__-"}), _event({"id": 2, "v": "_w"}), _event({"id": 3, "v": "_w=="})],
    )
    rows = _rows(tmp_path, _declare("id: bigint, v: {type: binary, as: base64-url-safe}"), spark)
    assert rows == {1: bytearray.fromhex("fbfffe"), 2: bytearray(b"\xff"), 3: bytearray(b"\xff")}


def test_transaction_number_as_sequence(tmp_path: Path, spark: SparkSession) -> None:
    """Of `tx_id` 700, 702, 701 the last commit would have been out of order: stock 9 in the place of 8."""
    events = [(90, 700, 10), (120, 702, 9), (140, 701, 8)]
    _write(
        tmp_path,
        [_event({"id": 1, "v": n}, "u", connector="postgresql", lsn=lsn, txId=tx) for lsn, tx, n in events],
    )
    for order in ("[tx_id]", "[tx_id, lsn]"):
        said = _refused(tmp_path, _declare("id: bigint, v: int", order=f"sequence: {order}"), spark)
        assert "`sequence` begins with tx_id" in said
        assert "3 events come from postgresql" in said
    assert _rows(tmp_path / "meant", _trusting(tmp_path), spark) == {1: 9}
    assert _rows(tmp_path, _declare("id: bigint, v: int", order="sequence: source"), spark) == {1: 8}


def _trusting(folder: Path) -> str:
    """The file of a pipeline that reads a folder's orders by tx_id, and says that this is meant."""
    text = _declare("id: bigint, v: int", "trust_sequence: true", "sequence: [tx_id]")
    return text.replace("orders/*", f"{folder}/orders/*")


def test_clock_of_the_connector_as_sequence(tmp_path: Path, spark: SparkSession) -> None:
    """`ts_ms` beside `source.ts_ms`."""
    _write(tmp_path, [_event({"id": 1, "v": 1}, connector="mysql", ts_ms=1)])
    said = _refused(tmp_path, _declare("id: bigint, v: int", order="sequence: [ts_ms]"), spark)
    assert "`sequence` begins with ts_ms" in said
    meant = _declare("id: bigint, v: int", "trust_sequence: true", "sequence: [ts_ms]")
    assert _rows(tmp_path, meant, spark) == {1: 1}


def test_event_of_another_table(tmp_path: Path, spark: SparkSession) -> None:
    """A signal for Debezium would have become a row `ad-hoc-1`."""
    own = {"schema": "public", "table": "orders"}
    signal = _event({"id": "ad-hoc-1", "type": "execute-snapshot"}, schema="public", table="debezium_signal")
    _write(tmp_path, [_event({"id": "a", "v": 1}, **own), signal, _event({"id": "b", "v": 2}, **own)])
    said = _refused(tmp_path, _declare("id: string, v: int"), spark)
    assert (
        "3 events are of several tables of the database, such as public.debezium_signal and public.orders"
        in said
    )
    for number, names in enumerate(("[orders]", "[public.orders]", "['ord*']")):
        meant = _declare("id: string, v: int", f"tables: {names}").replace("orders/*", f"{tmp_path}/orders/*")
        with mock.patch(
            "lakejoin.storage.spark.kept_frames.SMALL", -1 if number == 2 else SMALL
        ):  # once as a first load
            assert _rows(tmp_path / str(number), meant, spark) == {"a": 1, "b": 2}
        lake = Lake(str(tmp_path / str(number) / "lake"))
        counts = Journal(lake).last.tables["orders"]
        assert {name: count for name, count in counts.items() if name.startswith("ignored")} == {
            "ignored": 1,
            "ignored_other_table": 1,
        }


def test_column_in_other_capitals(tmp_path: Path, spark: SparkSession) -> None:
    """Oracle's `NAME` under a declared `name` would have been null in every row."""
    _write(tmp_path, [_event({"id": 1, "NAME": "ann"}), _event({"id": 2, "NAME": "bob"})])
    said = _refused(tmp_path, _declare("id: int, name: string"), spark)
    assert "none of 2 rows has column name, but they have NAME" in said
    assert '`name: {type: "string", from: NAME}`' in said
    meant = _declare("id: int, name: {type: string, from: NAME}")
    assert _rows(tmp_path, meant, spark, "name") == {1: "ann", 2: "bob"}


def test_column_in_other_capitals_that_is_not_meant(tmp_path: Path, spark: SparkSession) -> None:
    """`from:` with the column's own name says that it is to be null."""
    _write(tmp_path, [_event({"id": 1, "NAME": "ann"})])
    meant = _declare("id: int, name: {type: string, from: name}")
    assert _rows(tmp_path, meant, spark, "name") == {1: None}


@pytest.mark.parametrize("form", ["debezium", "jsonl"])
def test_update_that_lacks_a_column(form: str, tmp_path: Path, spark: SparkSession) -> None:
    """`n` would have been null after an update that has `city` only."""
    rows = [("c", {"id": 1, "n": "ann", "city": "Oslo"}), ("u", {"id": 1, "city": "Rome"})]
    _write(tmp_path, [{"op": op, **row} if form == "jsonl" else _event(row, op) for op, row in rows])
    columns = "id: int, n: string, city: string"
    said = _refused(tmp_path, _declare(columns, form=form), spark)
    assert "1 updates lack column n, which 1 records have" in said
    for absent, found in (("keep", "ann"), ("clear", None)):
        meant = _declare(columns, f"absent: {absent}", form=form).replace("orders/*", f"{tmp_path}/orders/*")
        folder = tmp_path / absent
        assert _rows(folder, meant, spark, "city") == {1: "Rome"}
        joined = spark.read.format("delta").load(Lake(str(folder / "lake")).path(changes_of("orders")))
        assert joined.where("city = 'Rome'").first()["n"] == found


def test_column_that_the_source_got_later(tmp_path: Path, spark: SparkSession) -> None:
    """It is null before; what lacks it behind the first record that has it is asked about."""
    rows = [("c", {"id": 1}), ("u", {"id": 1}), ("u", {"id": 1, "n": "ann"})]
    _write(tmp_path, [_event(row, op) for op, row in rows])
    text = _declare("id: int, n: string")
    assert _rows(tmp_path, text, spark, "n") == {1: "ann"}
    _write(tmp_path, [_event({"id": 1}, "u")], "2")
    with pytest.raises(AmbiguousInput, match="1 updates lack column n, which 0 records have"):
        run(make_pipeline(tmp_path, text), spark)


def test_column_that_no_record_has(tmp_path: Path, spark: SparkSession) -> None:
    """It is null, as declared: inserts lack it as well, and no row has a value that an update could have left out."""
    text = _declare("id: int, n: string")
    _write(tmp_path, [_event({"id": 1}), _event({"id": 1}, "u")])
    assert _rows(tmp_path, text, spark, "n") == {1: None}
    _write(tmp_path, [_event({"id": 1}, "u")], "2")
    assert _rows(tmp_path, text, spark, "n") == {1: None}


def test_source_is_read_once_to_be_asked_and_for_its_batch(tmp_path: Path, spark: SparkSession) -> None:
    """The share of bad records is counted in what was read as well; a batch that was cut off reads anew."""
    _write(tmp_path, [_event({"id": n, "v": n}) for n in range(3)])
    pipeline = make_pipeline(tmp_path, _declare("id: int, v: int", order="max_bad_ratio: 0.5"))
    with (
        mock.patch("lakejoin.orchestration.planning.input_records.read_records", wraps=read_records) as reads,
        mock.patch("lakejoin.orchestration.runs.run.run_batch", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        run(pipeline, spark)
    assert reads.call_count == 1
    with mock.patch(
        "lakejoin.orchestration.planning.input_records.read_records", wraps=read_records
    ) as reads:
        assert run(pipeline, spark) == 1
        _write(tmp_path, [_event({"id": 4, "v": 4})], "2")
        assert run(pipeline, spark) == 1
    assert reads.call_count == 2


def test_last_piece_of_what_is_cut_into_batches_is_asked_before_the_first(
    tmp_path: Path, spark: SparkSession
) -> None:
    """What the records of all pieces say together is the answer."""
    _write(tmp_path, [_event({"id": n, "v": "12.5" if n else "1234"}) for n in range(4)])
    text = _declare('id: int, v: "decimal(9,2)"')
    assert run(make_pipeline(tmp_path, text), spark, batch_rows=2) == 2
    _write(tmp_path, [_event({"id": n, "v": None if n < 9 else "1234"}) for n in range(6, 10)], "2")
    with pytest.raises(AmbiguousInput, match="in 1 records column v"):
        run(make_pipeline(tmp_path, text), spark, batch_rows=2)


def _snapshot() -> list[dict[str, Any]]:
    """An update and a delete, and behind them older reads of both keys, and one without position of a third."""
    old, own = {"lsn": 150}, {"connector": "postgresql"}
    return [
        _event({"id": 1, "v": 2}, "u", lsn=200, **own),
        {**_event(None, "d", lsn=201, **own), "before": {"id": 2, "v": 1}},
        _event({"id": 1, "v": 1}, "r", **old, **own),
        _event({"id": 2, "v": 1}, "r", **old, **own),
        _event({"id": 3, "v": 3}, "r", lsn=None, **own),
    ]


def test_late_reads_of_a_snapshot(tmp_path: Path, spark: SparkSession) -> None:
    """By their place the old value would have come back, and the deleted row."""
    _write(tmp_path, _snapshot())
    said = _refused(tmp_path, _declare("id: int, v: int"), spark)
    assert "3 reads of a snapshot (op r) stand among or behind changes" in said
    by_source = _declare("id: int, v: int", order="sequence: source").replace(
        "orders/*", f"{tmp_path}/orders/*"
    )
    assert _rows(tmp_path / "by_source", by_source, spark) == {1: 2, 3: 3}
    in_order = _declare("id: int, v: int", "snapshots: in_order").replace("orders/*", f"{tmp_path}/orders/*")
    assert _rows(tmp_path / "in_order", in_order, spark) == {1: 1, 2: 1, 3: 3}


def test_reads_of_a_snapshot_without_position(tmp_path: Path, spark: SparkSession) -> None:
    """`snapshots: oldest` puts them before all changes."""
    _write(tmp_path, _snapshot())
    said = _refused(tmp_path, _declare("id: int, v: int", order="sequence: [lsn]"), spark)
    assert "1 reads of a snapshot have no lsn" in said
    meant = _declare("id: int, v: int", "snapshots: oldest", "sequence: [lsn]")
    assert _rows(tmp_path, meant, spark) == {1: 2, 3: 3}
    assert Lake(str(tmp_path / "lake")).snapshot(QUARANTINE) is None


def test_first_snapshot_before_all_changes(tmp_path: Path, spark: SparkSession) -> None:
    """It is no question, and later files with changes alone are none either."""
    _write(tmp_path, [_event({"id": 1, "v": 1}, "r"), _event({"id": 1, "v": 2}, "u")])
    text = _declare("id: int, v: int")
    assert _rows(tmp_path, text, spark) == {1: 2}
    _write(tmp_path, [_event({"id": 1, "v": 3}, "u")], "2")
    assert _rows(tmp_path, text, spark) == {1: 3}


COLUMNS = "id: bigint, name: string, at: timestamp"


def _flat(folder: Path, form: str) -> str:
    """The file of a pipeline whose one record has a name in capitals, and milliseconds in a timestamp."""
    row = {"op": "c", "id": 1, "NAME": "ann", "at": 1718454896000}
    path = folder / "orders"
    path.mkdir()
    match form:
        case "csv":
            (path / "1.csv").write_text("op,id,NAME,at\nc,1,ann,1718454896000\n")
        case "jsonl":
            write_lines(path / "1.jsonl", [row])
        case "parquet":
            pq.write_table(pa.table({name: [value] for name, value in row.items()}), path / "1.parquet")
        case "delta":
            rows = pa.table({name: [value] for name, value in row.items() if name != "op"})
            write_deltalake(str(path), rows, configuration={"delta.enableChangeDataFeed": "true"})
    return _declare(COLUMNS, form=form).replace("/*.jsonl", "" if form == "delta" else f"/*.{form}")


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "delta"])
def test_flat_rows_of_every_format(form: str, tmp_path: Path, spark: SparkSession) -> None:
    """Names in capitals and milliseconds are asked about wherever they stand."""
    text = _flat(tmp_path, form)
    said = _refused(tmp_path, text, spark)
    assert "none of 1 rows has column name, but they have NAME" in said
    assert "1 of 1 times in column at, such as" in said
    meant = text.replace("name: string", "name: {type: string, from: NAME}")
    meant = meant.replace("at: timestamp", "at: {type: timestamp, as: millis}")
    assert _rows(tmp_path, meant, spark, "name") == {1: "ann"}
    pipeline = make_pipeline(tmp_path, meant)
    changes = spark.read.format("delta").load(Lake(pipeline.lake).path(changes_of("orders")))
    assert changes.selectExpr("cast(at as string)").first()[0] == "2024-06-15 12:34:56"


def test_times_of_a_typed_column_are_asked_about_beside_one_that_is_null(
    tmp_path: Path, spark: SparkSession
) -> None:
    """Each column by itself, whatever else of the row is there."""
    (tmp_path / "orders").mkdir()
    row = {"op": ["c"], "id": [1], "seen": pa.array([None], pa.int64()), "at": [1718454896000]}
    pq.write_table(pa.table(row), tmp_path / "orders" / "1.parquet")
    text = _declare("id: int, seen: timestamp, at: timestamp", form="parquet").replace(".jsonl", ".parquet")
    assert "1 of 1 times in column at, such as" in _refused(tmp_path, text, spark)


def test_files_whose_names_and_numbers_order_them_differently(tmp_path: Path, spark: SparkSession) -> None:
    """The tenth file would have been older than the ninth, as in https://github.com/adobe/S3Mock/issues/67."""
    declared = _declare("id: bigint, v: int", form="jsonl")
    for number in (8, 9):
        _write(tmp_path, [{"op": "u", "id": 1, "v": number}], str(number))
    assert _rows(tmp_path, declared, spark) == {1: 9}
    _write(tmp_path, [{"op": "u", "id": 1, "v": 10}], "10")
    with pytest.raises(
        SourceRefused,
        match=r"table orders: no .*, and 10\.jsonl stands before 8\.jsonl by its name, but behind it by",
    ):
        run(make_pipeline(tmp_path, declared), spark)

    assert _rows(tmp_path, _declare("id: bigint, v: int", "file_order: number", form="jsonl"), spark) == {
        1: 10
    }
