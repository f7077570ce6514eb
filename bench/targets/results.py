"""Kept results as the rows of the table ask for them: by size, by changes, by who took part."""

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

Turn = Mapping[str, Any]
"""A contender's turn as `run.py` keeps it."""
_COMPILING = 5
"""So many turns go before one counts as warm, where there are more than twice as many."""


@dataclass(frozen=True)
class Result:
    """A kept race, or a kept measurement of starts or of first loads."""

    file: str
    found: Mapping[str, Any]

    @property
    def date(self) -> datetime:
        """When it began."""
        return datetime.fromisoformat(self.found["date"])

    @property
    def commit(self) -> str:
        """What was measured."""
        return str(self.found["commit"])

    @property
    def cores(self) -> int:
        """Cores of the machine."""
        return int(self.found["machine"]["cores"])

    @property
    def is_race(self) -> bool:
        """Whether contenders took turns at batches."""
        return "batches" in self.found

    @property
    def kind(self) -> str:
        """What was measured, where it is no race: `start` or `floor`."""
        return str(self.found.get("kind", ""))

    @property
    def left_rows(self) -> int:
        """Rows of the left table before the batches."""
        return int(self.found["rows"]["left"][0])

    @property
    def loaded_rows(self) -> int:
        """Rows of both sides before the batches."""
        return sum(int(rows[0]) for rows in self.found["rows"].values())

    @property
    def hot_share(self) -> float:
        """Share of the left rows that point at one right row; 0 where there is no such row."""
        return float((self.found.get("made") or {}).get("hot_share", 0))

    @property
    def alternates(self) -> bool:
        """Whether all contenders took part in every batch."""
        return int(self.found.get("rivals_every", 1)) == 1

    @property
    def is_plain(self) -> bool:
        """Whether all did the same batches, of usual rows, and no lake in it keeps a changelog or a history."""
        kept = self.has("changelog") or self.has("history")
        return self.alternates and not self.hot_share and not kept

    def changes(self, batch: int) -> tuple[int, int]:
        """Left and right rows of a batch."""
        rows = self.found["rows"]
        return int(rows["left"][batch]), int(rows["right"][batch])

    def usual_changes(self) -> tuple[int, int]:
        """Left and right rows of the first batch, which most batches have."""
        return self.changes(1)

    def turns(self, name: str) -> Sequence[Turn]:
        """A contender's turns at the batches behind the first load, in their order."""
        turns: Sequence[Turn] = self.found["batches"].get(name, ())
        return turns

    def meetings(self, batches: Container[int] | None = None) -> list[tuple[Turn, Turn]]:
        """Turns of ours and of Spark's recompute at the batches, or at those of `batches`, in which both took part."""
        theirs = {turn["batch"]: turn for turn in self.turns("spark")}
        both = [(turn, theirs[turn["batch"]]) for turn in self.turns("ours") if turn["batch"] in theirs]
        return [pair for pair in both if batches is None or pair[0]["batch"] in batches]

    def load(self, name: str) -> Turn | None:
        """A contender's first load, if the race began with one."""
        turn: Turn | None = self.found["first_load"].get(name)
        return turn

    def costs(self, piece: str, when: str) -> Sequence[Turn]:
        """What a piece of a first load cost each time: in a `new_process`, or in `turns` with the other pieces."""
        costs: Sequence[Turn] = self.found["pieces"].get(piece, {}).get(when, ())
        return costs

    def has_costs(self, *pieces: str) -> bool:
        """Whether all of these ran in new processes and in turn."""
        return all(self.costs(piece, when) for piece in pieces for when in ("new_process", "turns"))

    def has(self, *names: str) -> bool:
        """Whether all of these took part in batches."""
        return all(self.turns(name) for name in names)


def read_results(folder: Path) -> list[Result]:
    """Read all results of a folder, the newest first; plans and other files beside them are passed over."""
    found = [Result(file.name, json.loads(file.read_text())) for file in folder.glob("*.json")]
    return sorted(found, key=lambda result: result.date, reverse=True)


def warm(turns: Sequence[Turn]) -> Sequence[Turn]:
    """The turns at which everything counts as compiled, where there are many: those behind the first few."""
    return turns[_COMPILING:] if len(turns) > 2 * _COMPILING else turns


def wall(turns: Iterable[Turn]) -> float:
    """The median of the time that turns took."""
    return median(float(turn["wall_seconds"]) for turn in turns)


def upkeep(turns: Sequence[Turn]) -> float:
    """What the maintenance behind a turn took, spread over all of them: it is not part of their time."""
    return float(sum(turn["maintenance"]["wall_seconds"] for turn in turns) / len(turns))


def busy(turns: Iterable[Turn], cores: int) -> float:
    """Share of the machine's processors that others used while the turns ran."""
    listed = list(turns)
    seconds = sum(turn["wall_seconds"] for turn in listed)
    return float(sum(turn["others_cpu_seconds"] for turn in listed) / (cores * seconds)) if seconds else 0.0
