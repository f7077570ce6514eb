"""Finds the sockets of engines, in a folder that only the user may enter, and passes messages over them.

A message is a line of JSON: what is asked for goes one way, the answer the other.
"""

import json
import os
import socket
import stat
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from lakejoin.storage.errors import LakejoinError

_LONGEST = 100
"""Bytes of a socket's path that every system takes."""


class NoFolder(LakejoinError):
    """No engine can be kept: there is no folder for its socket."""


def engine_folder(cache: Path) -> Path:
    """Return the folder of the engines of this user, below `cache`. Raises `NoFolder`."""
    folder = cache.absolute() / "engines"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except OSError as error:
        raise NoFolder(f"{folder}: {error.strerror}") from None
    if status.st_uid != os.geteuid():
        raise NoFolder(
            f"{folder} belongs to another user; remove it, or name another cache in XDG_CACHE_HOME"
        )
    if stat.S_IMODE(status.st_mode) & 0o077:
        raise NoFolder(f"{folder} may be entered by other users; expected the rights 700")
    if len(os.fsencode(folder)) > _LONGEST - len(socket_path(Path(), "0" * 16).name):
        raise NoFolder(f"the path {folder} is too long for a socket; name a shorter cache in XDG_CACHE_HOME")
    return folder


def socket_path(folder: Path, key: str) -> Path:
    """Return the socket of the engine with a key."""
    return folder / f"{key}.sock"


def log_path(folder: Path, key: str) -> Path:
    """Return the file of what the engine with a key and its JVM say."""
    return folder / f"{key}.log"


def log_paths(folder: Path) -> list[Path]:
    """Return the logs of all engines, those that have ended included, the last written last."""
    return sorted(folder.glob("*.log"), key=lambda path: path.stat().st_mtime)


def connect(path: Path, timeout: float) -> socket.socket | None:
    """Return a connection to the engine at a socket, None where nobody listens."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(timeout)
    try:
        connection.connect(os.fspath(path))
    except OSError:
        connection.close()
        return None
    return connection


def send(connection: socket.socket, message: Mapping[str, Any]) -> None:
    """Send a message."""
    connection.sendall(json.dumps(message).encode() + b"\n")


def receive(connection: socket.socket) -> dict[str, Any] | None:
    """Return the next message, None where the other side is gone or says something else."""
    line = b""
    while not line.endswith(b"\n"):
        try:
            piece = connection.recv(4096)
        except OSError:
            return None
        if not piece:
            return None
        line += piece
    try:
        message = json.loads(line)
    except ValueError:
        return None
    return message if isinstance(message, dict) else None


def exchange(connection: socket.socket, message: Mapping[str, Any]) -> dict[str, Any] | None:
    """Send a message and return the answer, None where the other side is gone or says something else."""
    try:
        send(connection, message)
    except OSError:
        return None
    return receive(connection)


def ask(path: Path, question: str, timeout: float) -> dict[str, Any] | None:
    """Return the answer of the engine at a socket, None where there is none within so many seconds."""
    connection = connect(path, timeout)
    if connection is None:
        return None
    with closing(connection):
        return exchange(connection, {"ask": question})


def answers(folder: Path, question: str, timeout: float = 10) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the key and the answer of each engine that answers."""
    for path in sorted(folder.glob("*.sock")):
        if answer := ask(path, question, timeout):
            yield path.stem, answer
