"""Makes the paths of a configuration file absolute, of the lake and of sources, or leaves them as URIs.

As in `values`, each function takes what YAML gave, and raises `ValueError` with what is allowed.
"""

import os.path
import re
from collections.abc import Callable, Collection
from pathlib import Path

from pydantic import ValidationInfo

from lakejoin.orchestration.config.problems import did_you_mean, listed
from lakejoin.storage.errors import has_credentials
from lakejoin.storage.sources.files.path_patterns import FIELDS, fields_in, fixed

SCHEMES = ("s3a", "abfss", "gs", "hdfs")
_ENCODED = "%[0-9A-Fa-f]{2}"
_UNOPENED = re.compile(rf"[\[\]^|\\]|{_ENCODED}")
"""delta-rs makes a URL of a path, and of these signs something else or an error."""
_UNREAD = re.compile(_ENCODED)
"""The same of a URI's key, of which it writes the data files elsewhere than it looks for them."""
_PLACEHOLDER = re.compile(r"\$?\{[^}]*\}?|\}")


def resolve_lake(value: str, info: ValidationInfo) -> str:
    """The lake's directory as an absolute path, or its URI without a slash at its end."""
    if _PLACEHOLDER.search(value):
        raise ValueError(
            "a lake has no placeholders, and environment variables are not filled in; write it out"
        )
    resolved = _resolve(value, info)
    if "://" not in resolved and _is_file(resolved):
        raise ValueError("is a file; a lake is a directory (it may not exist yet) or a URI")
    if "://" not in resolved and (sign := _UNOPENED.search(resolved)):
        raise ValueError(
            f"its absolute path holds {sign[0]!r}, with which delta-rs opens no directory; put the lake elsewhere"
        )
    if "://" in resolved and (sign := _UNREAD.search(resolved)):
        raise ValueError(
            f"its URI holds {sign[0]!r}, with which delta-rs reads no table; put the lake elsewhere"
        )
    return resolved.rstrip("/") if "://" in resolved else resolved


def _is_file(path: str) -> bool:
    """Whether there is a file; none that one may know of is none, and whoever opens the lake says why it cannot."""
    try:
        return Path(path).is_file()
    except OSError:
        return False


def resolve_file(value: str, info: ValidationInfo) -> str:
    """A file of this machine, as an absolute path."""
    resolved = _resolve(value, info)
    if "://" in resolved:
        raise ValueError("is read from this machine; write a plain path")
    return resolved


def resolve_source(value: str, info: ValidationInfo) -> str:
    """The path of source files, absolute, with its fields (`{date}`) and wildcards left in."""
    for placeholder in _PLACEHOLDER.findall(value):
        if placeholder.startswith("$"):
            raise ValueError(f"environment variables are not filled in ({placeholder}); write the path out")
        if placeholder[1:-1] not in FIELDS:
            raise ValueError(
                f"unknown placeholder {placeholder}; expected {{date}} (YYYY-MM-DD), {{year}}, {{month}}, {{day}} or "
                "{hour}"
            )
    _check_makes_day(fields_in(value))
    return _resolve(value, info, of_directory=fixed)


def _check_makes_day(found: Collection[str]) -> None:
    """Refuse parts of a day that make none: what has no day is in no partition, and nothing orders its hours."""
    if "date" in found or not found:
        return
    missing = [f"{{{name}}}" for name in ("year", "month", "day") if name not in found]
    if missing:
        one = next(name for name in FIELDS if name in found)
        raise ValueError(
            f"{{{one}}} needs a day, which {{date}} makes, or {{year}}, {{month}} and {{day}} together; add "
            f"{listed(missing)}, or write * in place of the placeholders where files have no day"
        )


def _resolve(value: str, info: ValidationInfo, of_directory: Callable[[str], str] = str) -> str:
    """A path made absolute from the file's directory, as it stands in the context; URIs stay.

    `of_directory`: what the directory's own path becomes, which is no pattern where the value is one.
    """
    if not value.strip() or not value.isprintable():
        raise ValueError("expected a path or a URI")
    scheme, separator, rest = value.partition("://")
    if separator or value.startswith("file:"):
        _check_uri(scheme, rest)
        if has_credentials(value):
            raise ValueError("credentials may not stand in a URI; set them in the environment")
        return value
    if value.startswith("~"):
        raise ValueError("'~' is not expanded; write the directory out")
    directory = of_directory(str((info.context or {}).get("directory", "")))
    return os.path.normpath(Path(directory) / value)


def _check_uri(scheme: str, rest: str) -> None:
    if scheme.startswith("file"):
        raise ValueError("write a local directory as a plain path, without 'file:'")
    if scheme not in SCHEMES:
        hint = did_you_mean(scheme, SCHEMES)
        raise ValueError(f"unknown scheme '{scheme}'{hint} (allowed: {listed(SCHEMES)}, or a plain path)")
    host, _, _ = rest.partition("/")
    if not host and scheme != "hdfs":
        raise ValueError(f"expected a bucket or container after '{scheme}://'")
