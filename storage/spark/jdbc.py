"""Provides the driver by which Spark asks databases; Spark comes without one."""

from collections.abc import Iterable
from pathlib import Path

from lakejoin.storage.spark.jars import Resolve, provide_folder

SCHEME = "jdbc:postgresql:"
"""As `storage.sources.database.queries.POSTGRESQL` begins."""
DRIVER = "42.7.11"
COORDINATES = (f"org.postgresql:postgresql:{DRIVER}",)
NOT_FETCHED = ("org.checkerframework:*",)  # what it was compiled with


def on_databases(places: Iterable[str]) -> bool:
    """Tell whether any of these paths and URIs is a database."""
    return any(place.startswith(SCHEME) for place in places)


def provide_driver(cache: Path, resolve: Resolve) -> list[Path]:
    """Return the paths of the driver's JARs, fetched by `resolve` at the first time. Raises `JarsNotFound`."""
    return provide_folder(cache / f"postgresql-{DRIVER}", "the driver of PostgreSQL", COORDINATES, resolve)
