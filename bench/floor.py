"""What the tables of a first load take at least: `floor.py --workload DIR [PIECE ...]`.

The pieces, by default those that need no lake, in this order:

    recompute  the rival: the workload's files read, joined, and written as one Delta table
    sources    the tables that the first load commits, made of the same files by the shortest program there is
    tables     the same tables, each read from a kept lake and written again, all at once: nothing to work out
    each       the same, one after the other
    load       our first load of the workload, rules and bookkeeping included

Whatever makes these tables by Spark with these settings takes no less. First each piece runs in new processes of its
own, `--processes` times in turn, as a first load usually does. Then all take turns in one process: what the first turn
took, which compiles, is told apart from the `--times` behind it. A joined table that is not as expected ends it with
exit code 1; 2 is for wrong usage.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script, from wherever

from bench.contest.arguments import add_result, add_session, count, kept_lake
from bench.contest.cost import Cost
from bench.contest.kept import write_result
from bench.contest.pieces import KEPT, KINDS, Stand, cost, cost_in_new_process, pieces
from bench.contest.race import in_turn
from bench.contest.report import medians
from bench.contest.surroundings import heading, rows
from lakejoin.orchestration.cli.terminal import print_table, say
from lakejoin.storage.errors import LakejoinError


@dataclass
class Costs:
    """What a piece cost each time."""

    new_process: list[Cost] = field(default_factory=list)
    first_turn: list[Cost] = field(default_factory=list)
    """In the process that all share; its only one."""
    turns: list[Cost] = field(default_factory=list)
    """Those behind it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, keep and print; return the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    kinds = options.pieces or [kind for kind in KINDS if kind not in KEPT]
    if options.lake is None and KEPT & set(kinds):
        parser.error("tables and each are read from a lake; name it with --lake")
    result = {"kind": "floor"} | heading(options) | {"rows": rows(options.workload, 0)}
    stand = Stand(options.workload, options.lake, options.master, options.driver_memory)
    try:
        found = _measured(kinds, stand, options.processes, options.times)
    except LakejoinError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    write_result({**result, "pieces": {name: asdict(costs) for name, costs in found.items()}}, options.json)
    print_table(
        "Seconds (CPU seconds), medians",
        ["piece", "in a new process", "first turn", "turns behind it", "MiB"],
        [
            (name, *map(_told, (costs.new_process, costs.first_turn, costs.turns)), _mebibytes(costs))
            for name, costs in found.items()
        ],
    )
    return 0


def _measured(kinds: Sequence[str], stand: Stand, processes: int, times: int) -> Mapping[str, Costs]:
    named = pieces(kinds, stand)
    found = {name: Costs() for name in named}
    for name, spent in _new_processes([kind for kind in kinds if kind != "each"], stand, processes):
        found[name].new_process.append(spent)
    for turn in range(times + 1):
        for name, piece in in_turn(list(named.items()), turn):
            spent = cost(name, piece, stand)
            say(f"turn {turn or 'that compiles'}: {name} {spent.wall_seconds} s")
            (found[name].turns if turn else found[name].first_turn).append(spent)
    return found


def _new_processes(kinds: Sequence[str], stand: Stand, processes: int) -> Iterator[tuple[str, Cost]]:
    for process in range(1, processes + 1):
        for kind in in_turn(kinds, process):
            spent = cost_in_new_process(kind, stand)
            say(f"new process {process}: {kind} {spent.wall_seconds} s")
            yield kind, spent


def _told(costs: Sequence[Cost]) -> str:
    if not costs:
        return ""
    found = medians(costs)
    return f"{found['wall_seconds']:.1f} ({found['cpu_seconds']:.1f})"


def _mebibytes(costs: Costs) -> int:
    return round(costs.turns[0].file_bytes / 2**20)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="floor.py", description="Make again what a first load makes.")
    parser.add_argument("pieces", nargs="*", choices=[*KINDS, []], metavar="PIECE", help=" ".join(KINDS))
    parser.add_argument("--workload", type=Path, required=True, metavar="DIR", help="made by workload.py")
    parser.add_argument(
        "--lake", type=kept_lake, metavar="DIR", help="made of it by run.py --keep-lake; for tables and each"
    )
    parser.add_argument("--times", type=count, default=5, metavar="N", help="turns (default: 5)")
    parser.add_argument(
        "--processes", type=count, default=5, metavar="N", help="new processes for each piece (default: 5)"
    )
    add_result(parser)
    add_session(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
