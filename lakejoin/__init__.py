"""Keeps joins of change data up to date on a lakehouse."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lakejoin.reading import read as read
    from lakejoin.running import run as run

_MODULES = {"read": "lakejoin.reading", "run": "lakejoin.running"}
"""Where the names of the API are, each imported when it is first asked for: so `import lakejoin` is quick."""

__all__ = ["read", "run"]


def __getattr__(name: str) -> Any:
    """Return a name of the API."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
