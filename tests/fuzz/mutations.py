"""Lines that were recorded, with bytes changed at random: what disks, networks and other programs make of them.

How long the tests beside this file go on is said by LAKEJOIN_FUZZ_SECONDS; without it each makes one short round. A
failure names its seed, and LAKEJOIN_FUZZ_SEED repeats it.
"""

import json
import os
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

RECORDING = Path(__file__).parents[1] / "data/flights-cdc-tiny"
SECONDS = float(os.environ.get("LAKEJOIN_FUZZ_SECONDS", "0"))
_FIRST_SEED = int(os.environ.get("LAKEJOIN_FUZZ_SEED", "1"))
_PIECES: Sequence[bytes] = (
    b"{", b"}", b"[", b"]", b'"', b"'", b":", b",", b"\\", b"\0", b"\r", b"\t", b" ", b"null", b"true", b"NaN",
    b"Infinity", b"-", b"1e999", b"-0", b"9" * 40, b"1." + b"0" * 30 + b"1", b"\xff", b"\xc3", b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80", b"\xef\xbb\xbf", b"\xe2\x80\xae", b"\\u0000", b"\\ud83d", b"\\ude00", b"\\u", b"[" * 1200,
    b'{"a":' * 1200, b'"op":"d",', b'"value":null,', b'"payload":{', b"__debezium_unavailable_value", b'"id":', b'\\"',
    b"x" * 60_000, b"\\N", b'""', b"0001-01-01T00:00:00Z", b"99999-01-01", b"-9223372036854775809",
    b'},"_lj_record":{"op":"d"}', b'},"a":{', b'},{', b'}],"a":[{',
)  # fmt: skip


def seeds() -> Iterator[int]:
    """Yield seeds until the time is up, at least one."""
    end, seed = time.monotonic() + SECONDS, _FIRST_SEED
    yield seed
    while time.monotonic() < end:
        seed += 1
        yield seed


def recorded() -> list[bytes]:
    """Every line of the recorded flights."""
    return [
        line for file in sorted(RECORDING.glob("flights/*.jsonl")) for line in file.read_bytes().splitlines()
    ]


def flat() -> list[bytes]:
    """The rows of the recorded events as flat lines."""
    values = [json.loads(line)["value"] for line in recorded()]
    rows = [({"op": v["op"]} | (v["after"] or v["before"])) for v in values if v]
    return [json.dumps(row, ensure_ascii=False).encode() for row in rows]


def mutated(lines: Sequence[bytes], count: int, chance: random.Random) -> list[bytes]:
    """So many lines, each changed at a few places; a tenth stays as it was. Line feeds are none of the changes."""
    return [_mutated(chance.choice(lines), lines, chance).replace(b"\n", b"\r") for _ in range(count)]


def _mutated(line: bytes, lines: Sequence[bytes], chance: random.Random) -> bytes:
    for _ in range(chance.choice((0, 1, 1, 1, 1, 2, 2, 3, 5, 9))):
        start = chance.randrange(len(line) + 1)
        end = min(len(line), start + chance.choice((0, 0, 1, 1, 2, 5, 40, 400)))
        match chance.randrange(6):
            case 0:
                middle = b""
            case 1:
                middle = bytes([chance.randrange(256)])
            case 2:
                other = chance.choice(lines)
                at = chance.randrange(len(other) + 1)
                middle = other[at : at + chance.randrange(200)]
            case 3:
                middle = line[start:end] * 2
            case _:
                middle = chance.choice(_PIECES)
        line = line[:start] + middle + line[end:]
    return line
