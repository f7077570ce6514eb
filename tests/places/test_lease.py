"""One run at a time holds a lake on object storage."""

import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from lakejoin.storage.errors import LakeBusy, LakeUnusable
from lakejoin.storage.lake import lease
from lakejoin.storage.lake.layout import Lake
from lakejoin.storage.lake.lock import writing
from places.s3_server import BUCKET, s3_server

LAKE = Lake(f"s3a://{BUCKET}/lake")
LEASE = LAKE.path("_lease")


@pytest.fixture(autouse=True)
def _server(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give each test an empty server."""
    with s3_server() as server:
        for name, value in server.access.items():
            monkeypatch.setenv(name, value)
        yield


def test_lake_that_another_run_holds_is_busy() -> None:
    """The message says until when; the lake is free once that run has ended, well or not."""
    with (
        writing(LAKE),
        pytest.raises(LakeBusy, match=r"another run holds the lake, until .* UTC .*run again"),
    ):
        writing(LAKE).__enter__()

    with pytest.raises(ZeroDivisionError), writing(LAKE):
        raise ZeroDivisionError
    with writing(LAKE):
        pass


def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let more time pass than a term."""
    now = lease._now() + 2 * lease.TERM // timedelta(milliseconds=1)
    monkeypatch.setattr(lease, "_now", lambda: now)


def test_lease_of_a_run_that_died_ends_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has to clear up behind it."""
    lease._Lease(LEASE, lease.TERM).take()

    with pytest.raises(LakeBusy):
        writing(LAKE).__enter__()
    later(monkeypatch)
    with writing(LAKE):
        pass


def test_lease_is_renewed_while_its_run_works() -> None:
    """A run may take longer than the term."""
    with lease.leased(LEASE, timedelta(seconds=1)):
        first = held = DeltaTable(LEASE).transaction_version("held")
        end = time.monotonic() + 60
        while held == first and time.monotonic() < end:
            held = DeltaTable(LEASE).transaction_version("held")
        assert held > first


@pytest.mark.failure(12)
@pytest.mark.failure(13)
def test_of_two_runs_that_take_a_free_lease_at_once_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both saw it free, and only one commits."""
    with writing(LAKE):
        pass
    seen = DeltaTable(LEASE)
    with writing(LAKE):
        monkeypatch.setattr(lease, "_open", lambda path: seen)

        with pytest.raises(LakeBusy):
            writing(LAKE).__enter__()


def test_run_whose_lease_was_taken_over_says_so(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was held up for longer than the term; somebody has to look at it."""
    lake = Lake(f"{LAKE.root}_of_its_own")  # another test's lease may end later, for it had another clock
    late = lease._Lease(lake.path("_lease"), lease.TERM)
    late.take()
    late._term = timedelta(0)  # its next renewal is due
    later(monkeypatch)
    with writing(lake):
        late.keep(threading.Event())

    assert "another run took the lease over" in caplog.text


def answer_lost(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Let the answers to the next commits be lost: they are made, and look as if they had failed."""
    commit, left = lease._Lease._commit, [DeltaError("timed out"), OSError("timed out")][:times]

    def lose(held: lease._Lease, *of_commit: Any) -> None:
        commit(held, *of_commit)
        if left:
            raise left.pop()

    monkeypatch.setattr(lease._Lease, "_commit", lose)


def test_lease_whose_answer_was_lost_is_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run that took it does not take itself for another one, and gives it back in the end."""
    answer_lost(monkeypatch, times=2)
    for _ in range(2):
        with lease.leased(str(tmp_path)), pytest.raises(LakeBusy):
            lease._Lease(str(tmp_path), lease.TERM).take()


def test_lease_is_renewed_after_an_answer_was_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What the next renewal finds is its own; the run goes on holding the lake."""
    held = lease._Lease(str(tmp_path), timedelta(seconds=0.05))
    held.take()
    answer_lost(monkeypatch, times=2)
    ended = threading.Event()
    keeper = threading.Thread(target=held.keep, args=(ended,))
    keeper.start()
    start, end = DeltaTable(tmp_path).version(), time.monotonic() + 60
    while DeltaTable(tmp_path).version() < start + 4 and time.monotonic() < end:
        time.sleep(0.01)
    ended.set()
    keeper.join()

    assert caplog.text.count("could not be renewed: timed out") == 2
    assert "took the lease over" not in caplog.text
    assert DeltaTable(tmp_path).transaction_version("held") == held._until


def test_lake_in_a_bucket_that_is_not_there_is_not_writable() -> None:
    """The message says where, and what the store said."""
    with pytest.raises(LakeUnusable, match=r"s3a://nobody/lake/_lease: .*NoSuchBucket"):
        writing(Lake("s3a://nobody/lake")).__enter__()
