"""Defines the mistakes of a command's user, which the command line answers with exit code 2."""

from collections.abc import Iterable

from lakejoin.orchestration.config.problems import did_you_mean, listed
from lakejoin.storage.errors import LakejoinError


class WrongUsage(LakejoinError):
    """A name, number or value on the command line cannot be used; the message lists what can."""


def unknown(kind: str, name: str, known: Iterable[str]) -> WrongUsage:
    """Return the error for a name that is none of `known`, with the nearest one and all of them."""
    names = list(known)
    return WrongUsage(f"no {kind} {name!r}{did_you_mean(name, names)}; known: {listed(names) or 'none'}")
