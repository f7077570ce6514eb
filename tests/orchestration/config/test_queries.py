"""Tables of a database as sources: what a file says of them, and what is refused when it is read."""

from datetime import timedelta

import pytest

from lakejoin.orchestration.config import Pipeline
from lakejoin.orchestration.config.loading import load_text
from lakejoin.orchestration.config.problems import ConfigurationError

URL = "jdbc:postgresql://db:5432/shop"
OF_TABLE = f'format: jdbc, mode: snapshot, url: "{URL}", table: public.customers'
OF_CHANGES = 'format: jsonl, path: "changes/*.jsonl"'


def pipeline(source: str, rest: str = "") -> Pipeline:
    """Return a pipeline of a table with a source."""
    columns = "{id: bigint, name: {type: string, from: full_name}}"
    table = f"source: {{{source}}}\n    columns: {columns}\n    key: [id]\n"
    return load_text(f"name: shop\nlake: /lake\ntables:\n  customers:\n    {table}{rest}", "lakejoin.yaml")


def test_table_or_query_is_asked_for_at_most_once_a_day() -> None:
    """Or as often as it is declared; its dumps lie below the lake, and are snapshots there."""
    table = pipeline(OF_TABLE).tables["customers"]
    asked = table.source.asked
    assert asked is not None
    assert (asked.url, asked.rows, asked.every) == (URL, "public.customers", timedelta(days=1))
    assert table.source_spec.path == "/lake/_dumps/customers/*/*.parquet"
    assert table.source_spec.columns.names == ["id", "full_name"]
    said = OF_TABLE.replace(
        "table: public.customers", 'query: "select * from customers where id > 0", every: 1 hour'
    )
    other = pipeline(said).tables["customers"].source.asked
    assert other is not None
    assert (other.rows, other.every) == ("(select * from customers where id > 0\n)", timedelta(hours=1))


def test_session_is_told_of_the_databases_that_it_is_to_reach() -> None:
    """Those beside change data, too: they need the driver."""
    beside = f'    reconcile: {{format: jdbc, url: "{URL}", table: customers}}\n'
    assert pipeline(OF_TABLE).places == ("/lake", URL)
    assert URL in pipeline(OF_CHANGES, beside).places


def test_dump_beside_change_data_is_taken_each_time() -> None:
    """It is compared with what is there now."""
    beside = f'    reconcile: {{format: jdbc, url: "{URL}", table: customers}}\n'
    asked = pipeline(OF_CHANGES, beside).tables["customers"].of_snapshots.source.asked
    assert asked is not None
    assert asked.every == timedelta()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (OF_TABLE.replace("mode: snapshot, ", ""), r"source\.mode: format 'jdbc' gives whole tables"),
        (OF_TABLE.replace(f'url: "{URL}", ', ""), r"source\.url: required, but not given: The database"),
        (OF_TABLE.replace(", table: public.customers", ""), r"source\.table: required, but not given"),
        (OF_TABLE + ', query: "select 1"', r"source\.table: say one of the two"),
        (OF_TABLE + ', path: "a.csv"', r"source\.path: is for files; a query is asked of the database"),
        (OF_TABLE + ", strict: true", r"source\.strict: only declared columns are asked for"),
        (OF_TABLE + ", limits: {file: 1 GB}", r"limits\.file: limits files that others write"),
        (OF_TABLE + ", topic: a", r"source\.topic: only topics of format kafka have it"),
        (OF_TABLE.replace("public.customers", '"a; drop table b"'), r"expected 'table' or 'schema\.table'"),
        (OF_TABLE.replace("table: public.customers", "query: delete from a"), "begins with SELECT or WITH"),
        (OF_TABLE.replace("postgresql", "oracle"), "expected a PostgreSQL database such as"),
        (OF_CHANGES + ", table: a", r"source\.table: only queries of format jdbc have it"),
        (OF_CHANGES + ", every: 1 hour", r"source\.every: only queries of format jdbc have it"),
    ],
)
def test_what_a_query_cannot_be_is_refused(source: str, message: str) -> None:
    """When the file is read."""
    with pytest.raises(ConfigurationError, match=message):
        pipeline(source)


@pytest.mark.parametrize("secret", ["?password=hush", "?ssl=true&sslpassword=hush&user=ada"])
def test_secret_in_a_url_is_refused_and_not_repeated(secret: str) -> None:
    """It stands in the environment."""
    with pytest.raises(ConfigurationError, match="stands in the environment") as error:
        pipeline(OF_TABLE.replace(URL, URL + secret))
    assert "hush" not in str(error.value)
    with pytest.raises(ConfigurationError, match="without user and password") as error:
        pipeline(OF_TABLE.replace("//db", "//ada:hush@db"))
    assert "hush" not in str(error.value)


def test_reconcile_needs_no_time_between_dumps() -> None:
    """Each takes one."""
    beside = f'    reconcile: {{format: jdbc, url: "{URL}", table: customers, every: 1 hour}}\n'
    with pytest.raises(ConfigurationError, match="each `lakejoin reconcile` takes a dump of its own"):
        pipeline(OF_CHANGES, beside)
