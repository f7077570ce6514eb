"""Which addresses a process and those below it listen on, as Linux tells."""

import ipaddress
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_LISTENS = "0A"
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def listening(root: int) -> dict[int, Address]:
    """Ports and addresses that a process and its descendants listen on."""
    inodes = {inode for pid in family(root) for inode in _sockets(pid)}
    return {
        port: address
        for table in ("tcp", "tcp6")
        for port, address, inode in _listeners(Path("/proc/net") / table)
        if inode in inodes
    }


def family(root: int) -> set[int]:
    """A process and all below it."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # it ended meanwhile
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def is_loopback(address: Address) -> bool:
    """Whether only this machine reaches an address, also one that Java wrote as IPv6."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def _sockets(pid: int) -> Iterator[str]:
    with suppress(OSError):  # the process is gone
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):  # this file of it is gone, others are not
                target = str(link.readlink())
                if target.startswith("socket:["):
                    yield target.removeprefix("socket:[").removesuffix("]")


def _listeners(table: Path) -> Iterator[tuple[int, Address, str]]:
    for line in table.read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == _LISTENS:
            host, _, port = fields[1].partition(":")
            yield int(port, 16), _address(host), fields[9]


def _address(text: str) -> Address:
    """Each four bytes are written in the machine's own order."""
    words = [bytes.fromhex(text[i : i + 8])[::-1] for i in range(0, len(text), 8)]
    return ipaddress.ip_address(b"".join(words))
