"""What a real Debezium recorded from PostgreSQL in four settings, beside PostgreSQL's own answers, cell by cell."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from recordings.reading import Special, steps_told

pytestmark = pytest.mark.spark

INFINITE = {
    "infinity": ("9999-12-31 23:59:59.999999", "9999-12-31"),
    "-infinity": ("0001-01-01 00:00:00", "0001-01-01"),
}
"""What `infinity: max` makes of them, in a timestamp and in a date."""


def micros_of(name: str, unit: int = 1) -> Callable[[Mapping[str, Any]], object]:
    """The microseconds that a time of a day is, or how many of a larger unit."""

    def of(answer: Mapping[str, Any]) -> int | None:
        if answer[name] is None:
            return None
        hours, minutes, seconds = answer[name].lstrip("-").split(":")
        micros = (int(hours) * 60 + int(minutes)) * 60_000_000 + round(float(seconds) * 1_000_000)
        return (-micros if answer[name].startswith("-") else micros) // unit

    return of


def in_utc(name: str) -> Callable[[Mapping[str, Any]], object]:
    """A time of a day as Debezium writes it."""
    return lambda answer: (
        answer[name] and answer[name].replace("24:00:00", "00:00:00").replace("+00", "") + "Z"
    )


def little_endian(name: str, length: int = 0) -> Callable[[Mapping[str, Any]], object]:
    """Bits as the bytes that Debezium makes of them: the last first, no zeros at the end but for as many bytes."""

    def of(answer: Mapping[str, Any]) -> str | None:
        if answer[name] is None:
            return None
        number = int(answer[name] or "0", 2)
        return number.to_bytes(max(length, (number.bit_length() + 7) // 8), "little").hex()

    return of


def compact(name: str) -> Callable[[Mapping[str, Any]], object]:
    """JSON without spaces, as Debezium writes what is none in the database."""
    return lambda answer: (
        answer[name] and json.dumps(json.loads(answer[name]), separators=(",", ":"), ensure_ascii=False)
    )


def without_mask(answer: Mapping[str, Any]) -> object:
    """An address as it is shown: of one host, without its mask."""
    return answer["address"] and re.sub(r"/(32|128)$", "", answer["address"])


def place(answer: Mapping[str, Any]) -> object:
    """The numbers of a point."""
    return None if answer["place_x"] is None else json.dumps({"x": answer["place_x"], "y": answer["place_y"]})


def millis(times: str | None) -> str | None:
    """A time, or a list of times, without what is smaller than a millisecond."""
    return times and re.sub(r"([.][0-9]{3})[0-9]{1,3}", r"\1", times)


def span_text(answer: Mapping[str, Any]) -> str | None:
    """An interval as Debezium writes it: each part, the empty ones too."""
    found = re.fullmatch(
        r"P(?:(.+?)Y)?(?:(.+?)M)?(?:(.+?)D)?(?:T(?:(.+?)H)?(?:(.+?)M)?(?:(.+?)S)?)?", answer["span"] or ""
    )
    return found and "P{}Y{}M{}DT{}H{}M{}S".format(*(part or "0" for part in found.groups()))


def infinite(name: str, place: int) -> Callable[[Mapping[str, Any]], str | None]:
    """A time, or the first or last there is."""

    def of(answer: Mapping[str, Any]) -> str | None:
        text: str | None = answer[name]
        return INFINITE[text][place] if text in INFINITE else text

    return of


ALL: Special = {
    "clock": micros_of("clock"), "clock3": micros_of("clock3", 1000), "zoned": in_utc("zoned"),
    "span": lambda answer: answer["span"] and answer["span_micros"], "bits": little_endian("bits"),
    "varbits": little_endian("varbits"), "pairs": compact("pairs"), "address": without_mask, "place": place,
    "moment": infinite("moment", 0), "instant": infinite("instant", 0), "day": infinite("day", 1),
}  # fmt: skip
OWN_FORMS: Mapping[str, Special] = {
    "default": ALL,
    "unwrapped": ALL,
    "texts": {**ALL, "clock": in_utc("clock"), "clock3": in_utc("clock3"), "span": span_text},
    "connect": {
        **ALL,
        "clock": micros_of("clock", 1000),
        "moment": lambda answer: infinite("moment", 0)({"moment": millis(answer["moment"])}),
        "moments": lambda answer: millis(answer["moments"]),
    },
}
LOST = {
    # with `base64-url-safe` null comes in the place of bytes that did not change
    "connect": [
        f"documents_with_customers ({key},) raw: None, the database '{'00fe' * 49}00f" for key in (1, 4)
    ],
}
OF_DEBEZIUM = [
    # what it cannot say in its own types is refused, but for a day before Christ, which loses that
    "edges_with_customers (3,): only in the database",
    "edges_with_customers (4,): only in the database",
    "edges_with_customers (5,) day: '0044-03-15', the database '0044-03-15 BC'",
    "edges_with_customers (6,): only in the database",
    "edges_with_customers (7,): only in the database",
    "edges_with_customers (8,): only in the database",
]
NEW_KEY = "documents_with_customers (30,): only in the database"
"""A row whose key changed while its values out of line did not: nobody can know them."""


@pytest.mark.parametrize(
    ("setting", "batches"),
    [
        ("default", [[1, 2, 3]]),
        pytest.param("default", [[1], [2], [3]], marks=pytest.mark.slow),
        *[
            pytest.param(name, [[1, 2, 3]], marks=pytest.mark.slow)
            for name in ("unwrapped", "texts", "connect")
        ],
    ],
)
def test_joined_tables_equal_those_of_the_database(
    tmp_path: Path, spark: SparkSession, setting: str, batches: list[list[int]]
) -> None:
    """In every cell, but for what Debezium itself does not say: that is listed."""
    for step, told in steps_told("postgres", setting, tmp_path, spark, batches, OWN_FORMS[setting]):
        assert told == sorted([*OF_DEBEZIUM, *LOST.get(setting, ()), *([NEW_KEY] if step > 1 else [])])
