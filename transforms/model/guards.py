"""Lets tests take out the guards that keep a lake right, one at a time, to see that other tests would miss them.

Only `without` takes one out, and only tests call it: no setting, option or environment variable reaches it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

Guard = Literal[
    "transaction_identifier",  # a commit that a table's log has already is not made again
    "dense_batches",  # of two plans after the same batch one is kept
    "pinned_versions",  # state is read as it was before the batch
    "hash_check",  # an answer counts only for the left value that it was given to
    "sequence_check",  # a record that is older than what its key has changes nothing
    "deduplication",  # a record that comes again changes nothing
    "tombstone_retention",  # a deleted key is remembered as long as promised
]
_out: set[Guard] = set()


def guarded(guard: Guard) -> bool:
    """Whether the code is guarded: always, but in a test that took this guard out."""
    return guard not in _out


@contextmanager
def without(guard: Guard) -> Iterator[None]:
    """Take a guard out of the running code, in all its threads."""
    _out.add(guard)
    try:
        yield
    finally:
        _out.discard(guard)
