"""What a join selects of recorded days, beside SQL by DuckDB over what PostgreSQL answered."""

from pathlib import Path

import duckdb
import pytest
from pyspark.sql import SparkSession

from faults.shop import make_pipeline, run
from orchestration.checks.check_lake import check_lake
from orchestration.demo.example import EXAMPLE
from storage.lake.journal import Journal
from storage.lake.layout import Lake, joined_of
from tiny_lake import RECORDING

JOINS = """\
joins:
  board:
    left: flights
    right: planes
    foreign_key: [tailnum]
    how: left
    prefix: plane_
    select:
      - flight_id
      - "* except (flight_id, remark, fare_total, event_time, updated_at, plane_tailnum, plane_nickname,
        plane_book_value, plane_event_time, plane_updated_at, plane_engine)"
      - {late: dep_delay > 15, airport: lower(origin), seats: "coalesce(plane_seats, 0)"}
    where: status <> 'cancelled' or plane_seats > 100
  airbus:
    left: flights
    right: planes
    foreign_key: [tailnum]
    how: inner
    prefix: plane_
    result_key: combined
    select: [{aircraft: plane_tailnum}, {id: flight_id}, plane_model]
    where: plane_manufacturer like 'AIRBUS%'
"""
ANSWERS = {
    "board": """
        SELECT flight_id, COLUMNS(lambda name: name NOT IN ('flight_id', 'remark', 'fare_total', 'event_time',
            'updated_at', 'plane_tailnum', 'plane_nickname', 'plane_book_value', 'plane_event_time', 'plane_updated_at',
            'plane_engine')),
          CAST(dep_delay AS int) > 15 AS late, lower(origin) AS airport,
          coalesce(CAST(plane_seats AS int), 0) AS seats
        FROM answer WHERE status <> 'cancelled' OR CAST(plane_seats AS int) > 100""",
    "airbus": """
        SELECT plane_tailnum AS aircraft, flight_id AS id, plane_model
        FROM answer WHERE plane_manufacturer LIKE 'AIRBUS%'""",
}


@pytest.mark.spark
@pytest.mark.parametrize(
    ("data", "options"),
    [
        pytest.param(RECORDING, {}, id="tiny", marks=pytest.mark.slow),
        *[
            pytest.param(EXAMPLE / "data", options, id=name, marks=pytest.mark.slow)
            for name, options in (("daily", {}), ("at_once", {"batch_by": "all"}))
        ],
    ],
)
def test_selected_rows_are_those_of_the_database(
    data: Path, options: dict[str, str], tmp_path: Path, spark: SparkSession
) -> None:
    """All columns, in their order, after each batch."""
    (tmp_path / "data").symlink_to(data)
    text = (EXAMPLE / "lakejoin.yaml").read_text()
    text = text[: text.index("streams:")] + JOINS
    if data == RECORDING:
        text = text.replace(".jsonl.gz", ".jsonl")
    pipeline = make_pipeline(tmp_path, text)

    assert run(pipeline, spark, **options)

    lake = Lake(pipeline.lake)
    for batch in Journal(lake).published:
        folder = data / "expected" / str(batch.dates[-1])
        (answer,) = folder.glob("left_join.csv*")
        with duckdb.connect() as database:
            database.execute(
                "CREATE TABLE answer AS SELECT * FROM read_csv(?, all_varchar = true, nullstr = '\\N', header = true)",
                [str(answer)],
            )
            for join, sql in ANSWERS.items():
                expected = database.sql(sql)
                reader = spark.read.format("delta").option("versionAsOf", batch.versions[joined_of(join)])
                found = reader.load(lake.path(joined_of(join)))
                names = [name for name in found.columns if not name.startswith("_lj_")]
                texts = found.selectExpr(*[f"cast(`{name}` as string)" for name in names]).collect()
                assert names == expected.columns, join
                assert sorted(map(str, map(tuple, texts))) == sorted(map(str, _as_texts(expected))), join
    assert check_lake(pipeline, spark, batches=None).passed


def _as_texts(rows: duckdb.DuckDBPyRelation) -> list[tuple[str | None, ...]]:
    """Rows with each value as Spark writes it."""
    cells = [f'CAST("{name}" AS varchar) AS "{name}"' for name in rows.columns]
    return rows.project(", ".join(cells)).fetchall()
