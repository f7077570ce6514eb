"""Where the sockets of engines are, and what passes through them."""

import os
import socket
import threading
from pathlib import Path
from unittest.mock import patch

import pytest

from lakejoin.storage.spark.engine.sockets import (
    NoFolder,
    ask,
    connect,
    engine_folder,
    log_path,
    log_paths,
    receive,
    send,
    socket_path,
)


def test_folder_is_the_users_alone(tmp_path: Path) -> None:
    """Whoever could enter it could have a run connect to a JVM of his own."""
    folder = engine_folder(tmp_path)

    assert folder == tmp_path / "engines"
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o755)
    with pytest.raises(NoFolder, match="may be entered by other users"):
        engine_folder(tmp_path)
    with (
        patch.object(os, "geteuid", return_value=4711),
        pytest.raises(NoFolder, match="belongs to another user"),
    ):
        engine_folder(tmp_path)


@pytest.mark.parametrize(
    ("name", "said"),
    [("x" * 120, "is too long for a socket"), ("file/folder", "Not a directory")],
    ids=["long", "file"],
)
def test_folder_that_no_socket_fits_in_is_refused(tmp_path: Path, name: str, said: str) -> None:
    """With what is wrong, for the run then starts a JVM of its own."""
    (tmp_path / "file").touch()

    with pytest.raises(NoFolder, match=said):
        engine_folder(tmp_path / name)


def test_nobody_listens_at_a_socket_that_was_left(tmp_path: Path) -> None:
    """As after a power loss: the file is there, and no process."""
    path = socket_path(tmp_path, "0123456789abcdef")
    assert connect(path, 1) is None
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(os.fspath(path))

    assert connect(path, 1) is None
    assert ask(path, "status", 1) is None


@pytest.mark.parametrize("said", [b"", b"{", b"7\n", b"no JSON\n"], ids=str)
def test_answer_that_is_none_is_none(said: bytes) -> None:
    """Whatever answers instead of an engine."""
    here, there = socket.socketpair()
    with here, there:
        there.sendall(said)
        there.shutdown(socket.SHUT_WR)

        assert receive(here) is None


def test_message_arrives_in_one_piece_however_long(tmp_path: Path) -> None:
    """Longer than what a socket gives at once."""
    here, there = socket.socketpair()
    with here, there:
        message = {"ask": "x" * 1_000_000}
        sender = threading.Thread(target=send, args=(here, message))
        sender.start()

        assert receive(there) == message
        sender.join()


def test_logs_are_listed_in_the_order_in_which_they_were_written(tmp_path: Path) -> None:
    """The last one is what somebody looks for."""
    for key, moment in (("a", 2), ("b", 1)):
        log_path(tmp_path, key).touch()
        os.utime(log_path(tmp_path, key), (moment, moment))

    assert [path.stem for path in log_paths(tmp_path)] == ["b", "a"]
