"""Opens local paths and URIs through one interface, pyarrow's, and translates Spark's names for object stores."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from pyarrow import fs

from lakejoin.storage.errors import SourceNotFound, SourceRefused, SourceUnreadable, without_credentials

_URI = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
_BUCKET = re.compile(r"[a-z][a-z0-9+.-]*://[^/]*", re.IGNORECASE)
"""What stands before a URI's key; pyarrow's options of a bucket may be part of it."""
_SPARK_SCHEMES = {"s3a": "s3", "s3n": "s3"}


def is_local(path: str) -> bool:
    """Tell whether a path is on this machine and needs no URI."""
    return _URI.match(path) is None


def quoted_uri(path: str) -> str:
    """Return a URI as pyarrow and delta-rs take it, which unquote its key; Spark takes a key as it stands.

    A path on this machine, and of a URI the bucket, are returned as they are. Whatever stands behind the bucket is key.
    """
    bucket = _BUCKET.match(path)
    # by its @ a message knows a secret with a slash in it, which looks like a key
    return path if bucket is None else bucket[0] + quote(path[bucket.end() :], safe="/@")


def open_file_system(path: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of a path or URI, and the path in it. Raises `SourceRefused` without one."""
    scheme = _URI.match(path)
    if scheme is None:
        return fs.LocalFileSystem(), str(Path(path).absolute())
    name = scheme[1].lower()
    try:
        uri = _SPARK_SCHEMES.get(name, name) + quoted_uri(path)[scheme.end(1) :]
        found: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(uri)
    except (ValueError, OSError) as error:
        place, reason = without_credentials(path), without_credentials(str(error))
        raise SourceRefused(f"{place}: cannot be opened: {reason}") from error
    return found


def file_info(path: str) -> fs.FileInfo:
    """Return type, size and time of a path. Raises `SourceNotFound` where there is nothing."""
    system, inner = open_file_system(path)
    with reading(path):
        info = system.get_file_info(inner)
        if info.type == fs.FileType.NotFound:
            raise FileNotFoundError
    return info


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Turn the system's errors about a path into `SourceNotFound` and `SourceUnreadable`."""
    try:
        yield
    except FileNotFoundError as error:
        raise SourceNotFound(
            f"{path}: not found; check the path, or put the file back if it was removed"
        ) from error
    except OSError as error:
        # of errors that Arrow raises the system's own words stand at the end, and only Python's have a file
        of_python = f"[errno {error.errno}] {error.strerror}" if error.filename else ""
        reason = of_python or str(error).rpartition("Detail: ")[2]
        raise SourceUnreadable(
            f"{path}: cannot be read ({reason}); the user that runs Lakejoin needs the right to read it"
        ) from error


def spark_path(path: str) -> str:
    """Return a path as Spark takes it: this one file, whatever characters its name has."""
    uri = f"file://{Path(path).absolute()}" if is_local(path) else path
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", uri)
