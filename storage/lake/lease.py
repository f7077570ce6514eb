"""Lets one run at a time write a lake on object storage, by a lease that it takes, renews and gives back.

The lease is a Delta table without rows. The transaction identifier of its last commit says until when the lease is
held, in milliseconds since 1970. If several runs commit the same identifier on the same version, delta-rs lets all but
one fail. A second identifier holds a number that only this run has. By it the run knows its own commit, even if the
answer was lost.
"""

import logging
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable
from deltalake import Transaction as AppTransaction
from deltalake.exceptions import DeltaError, TableNotFoundError

from lakejoin.storage.delta_log.snapshot import reading_table
from lakejoin.storage.errors import LakeBusy
from lakejoin.storage.filesystem import quoted_uri
from lakejoin.transforms.model.printable_text import printable

TERM = timedelta(minutes=5)
"""How long a run that died still holds its lease. Clocks of machines must differ by less."""
_RENEWALS = 5
"""How often a lease is renewed within its term."""
_HELD, _RETURNED, _HOLDER = "held", "returned", "holder"
_SCHEMA = pa.schema([("nothing", pa.string())])
_PROPERTIES = {"delta.logRetentionDuration": "interval 1 days"}
_MILLISECOND = timedelta(milliseconds=1)
_EPOCH = datetime.fromtimestamp(0, UTC)

logger = logging.getLogger(__name__)


@contextmanager
def leased(path: str, term: timedelta = TERM) -> Iterator[None]:
    """Hold the lease whose table is at `path`. Raises `LakeBusy` where another run holds it, and `LakeUnusable`."""
    lease = _Lease(path, term)
    lease.take()
    ended = threading.Event()
    keeper = threading.Thread(target=lease.keep, args=(ended,), name="lease", daemon=True)
    keeper.start()
    try:
        yield
    finally:
        ended.set()
        keeper.join()
        lease.give_back()


class _Lease:
    def __init__(self, path: str, term: timedelta) -> None:
        self._path, self._term, self._until = path, term, 0
        self._name, self._tried = secrets.randbits(62), set[int]()

    def take(self) -> None:
        """Hold the lease from now on, unless another run does."""
        with reading_table(self._path):
            table = _open(self._path)
        until, returned = (table.transaction_version(app) or 0 for app in (_HELD, _RETURNED))
        if returned < until and _now() < until:
            raise self._busy(until)
        try:
            # by a clock that is behind the last holder's, it would look as if it had been given back
            self._hold(table, after=max(until, returned))
        except (DeltaError, OSError) as error:
            with reading_table(self._path):
                if self._is_held(DeltaTable(quoted_uri(self._path))):
                    return
                if isinstance(error, OSError):
                    raise
            raise self._busy(_now() + self._term // _MILLISECOND) from None

    def keep(self, ended: threading.Event) -> None:
        """Renew the lease until the run has ended."""
        while not ended.wait(self._term.total_seconds() / _RENEWALS):
            try:
                table = DeltaTable(quoted_uri(self._path))
                if not self._is_held(table):
                    logger.error(
                        "%s: another run took the lease over; end one of the two", printable(self._path)
                    )
                    return
                self._hold(table, after=self._until)
            except (DeltaError, OSError) as error:  # the next try may go well
                logger.warning(
                    "%s: the lease could not be renewed: %s", printable(self._path), printable(error)
                )

    def give_back(self) -> None:
        """Let others have the lease at once."""
        try:
            table = DeltaTable(quoted_uri(self._path))
            if self._is_held(table):
                self._commit(table, _RETURNED, self._until)
        except (DeltaError, OSError) as error:  # what the run did is done; the lease ends by itself
            logger.warning(
                "%s: the lease could not be given back: %s", printable(self._path), printable(error)
            )

    def _hold(self, table: DeltaTable, after: int) -> None:
        until = max(_now() + self._term // _MILLISECOND, after + 1)
        self._tried.add(until)
        self._commit(table, _HELD, until)
        self._until = until

    def _is_held(self, table: DeltaTable) -> bool:
        """Whether this run holds the lease, be it by a commit whose answer was lost."""
        held = table.transaction_version(_HELD)
        if held in self._tried and table.transaction_version(_HOLDER) == self._name:
            self._until = held
        return held == self._until

    def _commit(self, table: DeltaTable, app: str, version: int) -> None:
        transactions = [AppTransaction(app, version), AppTransaction(_HOLDER, self._name)]
        properties = CommitProperties(app_transactions=transactions)
        table.create_write_transaction([], "append", table.schema(), [], commit_properties=properties)

    def _busy(self, until: int) -> LakeBusy:
        time = _EPOCH + until * _MILLISECOND
        return LakeBusy(
            f"{self._path}: another run holds the lake, until {time:%H:%M:%S} UTC unless it goes on; one run at a time "
            "works on a lake. Wait for it to end, then run again; if it died, its hold ends at that time."
        )


def _open(path: str) -> DeltaTable:
    try:
        return DeltaTable(quoted_uri(path))
    except TableNotFoundError:
        DeltaTable.create(quoted_uri(path), _SCHEMA, mode="ignore", configuration=_PROPERTIES)
        return DeltaTable(quoted_uri(path))


def _now() -> int:
    return (datetime.now(UTC) - _EPOCH) // _MILLISECOND
