"""Says which rows of a database are a source, and how they are asked for.

User and password stand in no file: Spark is handed them from the environment, and no plan, message or log has them.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

USERNAME, PASSWORD = "LAKEJOIN_JDBC_USERNAME", "LAKEJOIN_JDBC_PASSWORD"
POSTGRESQL = "jdbc:postgresql://"
"""How the URL of a database begins that can be asked."""
SECRETS = ("user", "password", "sslpassword")
"""Parameters of a URL that stand in the environment instead."""
_ROWS_AT_ONCE = 1000
"""Rows that the driver holds at a time; without such a number it holds the whole answer."""


@dataclass(frozen=True)
class Query:
    """A table of a database, or what a query gives."""

    url: str
    rows: str
    """As it stands behind FROM."""
    every: timedelta
    """How long a dump counts as new."""


def of_table(url: str, table: str, every: timedelta) -> Query:
    """All rows of a table."""
    return Query(url, table, every)


def of_select(url: str, select: str, every: timedelta) -> Query:
    """The rows that a query gives; it may end in a comment."""
    return Query(url, f"({select.rstrip().rstrip(';')}\n)", every)


def spark_options(query: Query, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the options of Spark's source, secrets among them.

    With a number of rows at once Spark reads in a transaction; without parallel reading, in one, so in one state.
    """
    found = {
        "url": query.url,
        "driver": "org.postgresql.Driver",
        "fetchsize": str(_ROWS_AT_ONCE),
        "ApplicationName": "lakejoin",
        "tcpKeepAlive": "true",
    }
    said = {"user": environment.get(USERNAME), "password": environment.get(PASSWORD)}
    return found | {name: value for name, value in said.items() if value}
