"""Makes days of records of which some are poisoned at random places, and says by the model what must come of them."""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, get_args

from faults.shop import write_lines
from reference.foreign_key_join import ForeignKeyJoin, fold
from reference.stream_table_join import StreamRecord, StreamTableJoin
from reference.tables import Record, Table

FIRST_DAY = date(2024, 1, 1)
SOURCES = ("orders", "customers", "clicks")
Poison = Literal["foreign key", "stream key", "where", "event time", "parse"]
POISONS: tuple[Poison, ...] = get_args(Poison)
_KEYS = range(12)

CONFIGURATION = """\
name: poisoned
lake: ./lake
tables:
  orders:
    source: {{format: jsonl, path: "orders/{{date}}.jsonl"}}
    columns: {{id: bigint, customer: string}}
    key: [id]
  customers:
    source: {{format: jsonl, path: "customers/{{date}}.jsonl"}}
    columns: {{id: int, city: string}}
    key: [id]
streams:
  clicks:
    source: {{format: jsonl, path: "clicks/{{date}}.jsonl"}}
    columns: {{id: bigint, page: string, price: int, at: timestamp}}
    key: [id]
    event_time: at
    max_future: {max_future}
    where: "{where}"
joins:
  located: {{left: orders, right: customers, foreign_key: ["{foreign_key}"], how: left}}
  {visits}: {{stream: clicks, table: customers, foreign_key: ["{stream_key}"], how: left}}
"""
BEFORE = CONFIGURATION.format(
    max_future="1 day", where="100 / price > 1", foreign_key="cast(customer as int)",
    visits="visits", stream_key="cast(split(page, '/')[1] as int)",
)  # fmt: skip
MENDED = CONFIGURATION.format(
    max_future="10 days", where="coalesce(try_divide(100, price), 2) > 1",
    foreign_key="cast(replace(customer, 'no ', '') as int)",
    visits="visits_mended", stream_key="cast(split(page, '[/#]')[1] as int)",
)  # fmt: skip
TOLD: dict[Poison, tuple[str, str]] = {
    "foreign key": ("expression_failed", "[CAST_INVALID_INPUT]"),
    "stream key": ("expression_failed", "[INVALID_ARRAY_INDEX]"),
    "where": ("expression_failed", "[DIVIDE_BY_ZERO]"),
    "event time": ("in_the_future", "is more than max_future after"),
    "parse": ("parse_error", ""),
}
"""Reason, and what the details of a poisoned record have."""


@dataclass(frozen=True)
class Line:
    """A record of a source, where it stands, and what is wrong with it."""

    source: str
    day: int
    number: int
    """From 1."""
    record: dict[str, Any]
    poison: Poison | None = None

    @property
    def date(self) -> date:
        """The day of its file."""
        return FIRST_DAY + timedelta(days=self.day)

    @property
    def key(self) -> int:
        """The key of the record."""
        return int(self.record["id"])

    def text(self, *, mended: bool) -> str:
        """The line as its file has it. `mended`: as it is corrected there."""
        text = json.dumps(self.record)
        return text[:-1] if self.poison == "parse" and not mended else text

    def as_model(self) -> Record:
        """The record as the model of a table takes it."""
        value = None if self.record["op"] == "d" else self.record
        position = (self.date.isoformat(), f"{self.source}/{self.date}.jsonl", self.number)
        return Record(self.key, "upsert" if value else "delete", position, value)


def history(days: int, every: int, seed: int) -> list[Line]:
    """The records of so many days, one of them poisoned in one of `every` days, each way equally often."""
    dice = random.Random(seed)
    poisoned = {first + dice.randrange(every) for first in range(0, days, every)}
    ways: list[Poison] = []
    lines: list[Line] = []
    for day in range(days):
        today = list(_day(day, dice))
        if day in poisoned:
            if not ways:
                ways = dice.sample(POISONS, len(POISONS))
            today = _poisoned(today, ways.pop(), dice)
        lines += today
    return lines


def _day(day: int, dice: random.Random) -> Iterator[Line]:
    for number in range(1, dice.randint(2, 4) + 1):
        op = "d" if dice.random() < 0.15 else "c"
        order = {"op": op, "id": dice.choice(_KEYS), "customer": str(dice.choice(_KEYS))}
        yield Line("orders", day, number, order)
    for number in range(1, dice.randint(1, 2) + 1):
        op = "d" if dice.random() < 0.2 else "c"
        yield Line(
            "customers", day, number, {"op": op, "id": dice.choice(_KEYS), "city": f"city {day}.{number}"}
        )
    at = datetime.combine(FIRST_DAY, datetime.min.time(), UTC) + timedelta(days=day)
    for number in range(1, dice.randint(2, 3) + 1):
        click = {"op": "c", "id": day * 10 + number, "page": f"a/{dice.choice(_KEYS)}"}
        click |= {"price": dice.choice((10, 20, 1000)), "at": (at + timedelta(hours=number)).isoformat()}
        yield Line("clicks", day, number, click)


def _poisoned(today: list[Line], poison: Poison, dice: random.Random) -> list[Line]:
    sources = {"foreign key": ("orders",), "parse": ("orders", "customers")}.get(poison, ("clicks",))
    index = dice.choice([i for i, line in enumerate(today) if line.source in sources])
    line = today[index]
    other: dict[Poison, dict[str, Any]] = {
        "foreign key": {"op": "c", "customer": f"no {line.record.get('customer')}"},
        # what `where` leaves out is asked for no key and no time
        "stream key": {"price": 10, "page": str(line.record.get("page")).replace("/", "#")},
        "where": {"price": 0},
        "event time": {"price": 10, "at": f"{line.date + timedelta(days=5)}T00:00:00+00:00"},
        "parse": {},
    }
    today[index] = replace(line, record=line.record | other[poison], poison=poison)
    return today


def write_sources(folder: Path, lines: list[Line], *, mended: bool = False) -> None:
    """Write the files of these records."""
    files: dict[Path, list[str]] = {}
    for line in lines:
        path = folder / line.source / f"{line.date}.jsonl"
        files.setdefault(path, []).append(line.text(mended=mended))
    for path, texts in files.items():
        write_lines(path, texts)


class _LookUp:
    """The table of a stream's join, as it is when a record comes."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def look_up(self, key: Any, time: int) -> Any:
        return self._table.current().get(key)


Joined = dict[int, tuple[Any, ...]]
"""By key: the left row's text, and the city that it met."""


class Model:
    """What tables and joins are, record by record."""

    def __init__(self) -> None:
        """Begin without any record."""
        self._tables = {name: Table(by_position=True) for name in ("orders", "customers")}
        self._located = ForeignKeyJoin("left", lambda row: row["customer"].replace("no ", ""))
        self._visits = StreamTableJoin("left", _LookUp(self._tables["customers"]))
        self._emitted: list[Any] = []
        self._met: Joined = {}

    def take(self, lines: list[Line]) -> None:
        """Take the records of a batch; each is applied at its place, however late it comes."""
        changes: dict[str, Callable[[str, Any], list[Any]]] = {
            "orders": self._located.change_left,
            "customers": self._located.change_right,
        }
        for name, change in changes.items():
            for judged in self._tables[name].take(line.as_model() for line in lines if line.source == name):
                if judged.verdict == "applied":
                    self._emitted += change(str(judged.record.key), judged.record.value)
        clicks = [line for line in lines if line.source == "clicks" and line.record["price"] < 100]
        for click in clicks:
            page = click.record["page"]
            key = int(page.replace("#", "/").split("/")[1])
            (joined,) = self._visits.take([StreamRecord(key, page, 0)])
            self._met[click.key] = (page, joined.right and joined.right["city"])

    def located(self) -> Joined:
        """The join of the tables."""
        rows = fold(self._emitted).items()
        return {
            int(key): (row["left"]["customer"], row["right"] and row["right"]["city"]) for key, row in rows
        }

    def visits(self) -> Joined:
        """The join of the stream, with what each record met when it came."""
        return dict(self._met)
