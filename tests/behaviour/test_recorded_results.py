"""What joins select of recorded days, stars, groups and histories, beside SQL over what PostgreSQL answered."""

import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import DataFrame, SparkSession

from faults.shop import make_pipeline, run
from lakejoin.orchestration.checks.check_lake import check_lake
from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.demo.example import EXAMPLE
from lakejoin.storage.lake.journal import Journal
from lakejoin.storage.lake.layout import Lake, history_of, joined_of
from lakejoin.storage.lake.plan import Published
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
    history: true
  airbus:
    left: flights
    right: planes
    foreign_key: [tailnum]
    how: inner
    prefix: plane_
    result_key: combined
    select: [{aircraft: plane_tailnum}, {id: flight_id}, plane_model]
    where: plane_manufacturer like 'AIRBUS%'
  hub:
    left: flights
    rights:
      plane: {table: planes, foreign_key: [tailnum], how: left}
      weather: {table: weather, foreign_key: [origin], how: inner}
    history: true
  known:
    left: flights
    rights:
      plane: {table: planes, foreign_key: [tailnum], how: inner}
      there: {table: weather, foreign_key: [dest], how: left}
      here: {table: weather, foreign_key: [origin], how: left}
    select: [flight_id, {warmer: there_temp > here_temp}, plane_seats, here_station]
    where: plane_seats > 20 or there_station is not null
groups:
  by_plane:
    of: flights
    by: [tailnum]
    history: true
    select:
      n: count(*)
      fares: sum(fare_total)
      worst: max(dep_delay)
      places: count(distinct dest)
      ids: collect(flight_id, order by sched_dep)
  by_day:
    of: hub
    by: [{day: cast(sched_dep as date)}, carrier]
    select:
      known: count(plane_model)
      delay: sum(dep_delay)
      windy: max(weather_wind_speed)
      first: first(flight_id, order by sched_dep)
      ended: last(status, order by flight_id)
    having: known > 2
    history: {is_current: true}
"""
_WEATHER = """
        WITH w AS (SELECT COLUMNS(weather.*) AS "weather_\\0" FROM weather)"""
_AS_TIMESTAMPS = ", ".join(
    f"CAST({name} AS timestamp) AS {name}"
    for name in ("event_time", "plane_event_time", "weather_event_time")
)
_AS_DOUBLES = ", ".join(
    f"CAST(weather_{name} AS double) AS weather_{name}"
    for name in ("temp", "wind_speed", "wind_gust", "visib", "pressure")
)
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
    "hub": f"""{_WEATHER}
        SELECT * REPLACE ({_AS_TIMESTAMPS}, {_AS_DOUBLES}) FROM answer JOIN w ON origin = weather_station""",
    "known": """
        SELECT flight_id, CAST(there.temp AS double) > CAST(here.temp AS double) AS warmer, plane_seats,
          here.station AS here_station
        FROM answer LEFT JOIN weather there ON dest = there.station LEFT JOIN weather here ON origin = here.station
        WHERE plane_tailnum IS NOT NULL AND (CAST(plane_seats AS int) > 20 OR there.station IS NOT NULL)""",
    "by_plane": """
        SELECT tailnum, count(*) AS n, sum(CAST(fare_total AS decimal(12, 2))) AS fares,
          max(CAST(dep_delay AS int)) AS worst, count(DISTINCT dest) AS places,
          list(CAST(flight_id AS bigint) ORDER BY sched_dep, CAST(flight_id AS bigint)) AS ids
        FROM answer GROUP BY tailnum""",
    "by_day": """
        SELECT CAST(sched_dep AS date) AS day, carrier, count(plane_model) AS known,
          sum(CAST(dep_delay AS int)) AS delay, max(CAST(wind_speed AS double)) AS windy,
          first(flight_id ORDER BY sched_dep, CAST(flight_id AS bigint)) AS first,
          last(status ORDER BY CAST(flight_id AS bigint)) AS ended
        FROM answer JOIN weather ON origin = station GROUP BY ALL HAVING count(plane_model) > 2""",
}


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "options"),
    [
        pytest.param(RECORDING, {}, id="tiny"),
        pytest.param(EXAMPLE / "data", {}, id="daily"),
        pytest.param(EXAMPLE / "data", {"batch_by": "all"}, id="at_once"),
        pytest.param(EXAMPLE / "data", {"batch_rows": 500}, id="by 500 rows"),
    ],
)
def test_selected_rows_are_those_of_the_database(
    data: Path, options: dict[str, Any], tmp_path: Path, spark: SparkSession
) -> None:
    """All columns, in their order, after the last batch of each day; and what their histories say of then."""
    (tmp_path / "data").symlink_to(data)
    pipeline = make_pipeline(tmp_path, _configuration(data))

    assert run(pipeline, spark, **options)

    # a later batch of the day takes the place of an earlier one
    last = {str(batch.dates[-1]): batch for batch in Journal(Lake(pipeline.lake)).published}
    for day, batch in last.items():
        _compare(pipeline, spark, batch, data / "expected" / day)
    assert check_lake(pipeline, spark, batches=None).passed


@pytest.mark.spark
@pytest.mark.slow
def test_days_that_come_out_of_order_end_with_the_rows_of_the_database(
    tmp_path: Path, spark: SparkSession
) -> None:
    """Each day is worked off before the one that comes next, the last one first."""
    data = EXAMPLE / "data"
    pipeline = make_pipeline(tmp_path, _configuration(data))
    days = sorted(folder.name for folder in (data / "expected").iterdir() if folder.is_dir())
    for day in (days[-1], days[2], days[0], *days[3:-1], days[1]):
        for table in ("flights", "planes", "weather"):
            (tmp_path / "data" / table).mkdir(parents=True, exist_ok=True)
            shutil.copy2(data / table / f"{day}.jsonl.gz", tmp_path / "data" / table)
        assert run(pipeline, spark) == 1

    _compare(pipeline, spark, Journal(Lake(pipeline.lake)).published[-1], data / "expected" / days[-1])
    assert check_lake(pipeline, spark, batches=None).passed


def _configuration(data: Path) -> str:
    text = (EXAMPLE / "lakejoin.yaml").read_text()
    text = text[: text.index("streams:")] + JOINS
    versioned = "    versioned: {history_retention: 10 days}\n"
    assert versioned in text
    text = text.replace(versioned, "")
    return text.replace(".jsonl.gz", ".jsonl") if data == RECORDING else text


def _compare(pipeline: Pipeline, spark: SparkSession, batch: Published, folder: Path) -> None:
    lake = Lake(pipeline.lake)
    with duckdb.connect() as database:
        for name, stem in (("answer", "left_join"), ("weather", "weather")):
            (file,) = folder.glob(f"{stem}.csv*")
            database.execute(
                f"CREATE TABLE {name} AS "
                "SELECT * FROM read_csv(?, all_varchar = true, nullstr = '\\N', header = true)",
                [str(file)],
            )
        # until the fifth day the database had no such column
        database.execute("ALTER TABLE answer ADD COLUMN IF NOT EXISTS plane_engine varchar")
        for join, sql in ANSWERS.items():
            expected = database.sql(sql)
            reader = spark.read.format("delta").option("versionAsOf", batch.versions[joined_of(join)])
            found = reader.load(lake.path(joined_of(join)))
            names = [name for name in found.columns if not name.startswith("_lj_")]
            assert names == expected.columns, join
            answer = sorted(map(str, _as_texts(expected)))
            assert _texts(found, names) == answer, join
            if pipeline.joins[join].history_spec is not None:
                versions = spark.read.format("delta").load(lake.path(history_of(join)))
                there = versions.where(
                    f"_lj_batch <= {batch.batch} and (_lj_until is null or _lj_until > {batch.batch})"
                )
                assert _texts(there, names) == answer, join


def _texts(rows: DataFrame, names: list[str]) -> list[str]:
    texts = rows.selectExpr(*[f"cast(`{name}` as string)" for name in names]).collect()
    return sorted(map(str, map(tuple, texts)))


def _as_texts(rows: duckdb.DuckDBPyRelation) -> list[tuple[str | None, ...]]:
    """Rows with each value as Spark writes it."""
    cells = [f'CAST("{name}" AS varchar) AS "{name}"' for name in rows.columns]
    return rows.project(", ".join(cells)).fetchall()
