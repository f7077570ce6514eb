"""Lets an error of a store name the method that was called."""

from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any

from lakejoin.storage.stores.errors import StoreError


def name_methods(store: type) -> None:
    """Make the public methods that a class defines put their names into the `StoreError`s that they raise.

    A method may be called by another one: the outermost is what the caller knows, and it is the last to set its name.
    """
    for name, found in list(vars(store).items()):
        if name.startswith("_"):
            continue
        if isinstance(found, FunctionType):
            setattr(store, name, _naming(found))
        elif isinstance(found, classmethod):
            setattr(store, name, classmethod(_naming(found.__func__)))


def _naming(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def named(*arguments: Any, **options: Any) -> Any:
        try:
            return method(*arguments, **options)
        except StoreError as error:
            error.method = method.__name__
            raise

    return named
