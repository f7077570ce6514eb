"""Where the deletion vector of a data file lies (Delta protocol, "Deletion Vector Descriptor Schema")."""

from base64 import b85decode
from collections.abc import Mapping
from typing import Any
from uuid import UUID

_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_B85 = str.maketrans(_Z85, _B85)
_UUID = 20
"""Characters of Z85 (ZeroMQ RFC 32) that 16 bytes take."""


def vector_file(file: Mapping[str, Any]) -> str | None:
    """The file with the deletion vector of an `add` or `remove`: below the table, or a place of its own.

    None where it has no vector, or the log itself holds it.
    """
    vector = file.get("deletionVector") or {}
    where = vector.get("pathOrInlineDv", "")
    match vector.get("storageType"):
        case "u":
            prefix, text = where[:-_UUID], where[-_UUID:]
            name = f"deletion_vector_{UUID(bytes=b85decode(text.translate(_TO_B85)))}.bin"
            return f"{prefix}/{name}" if prefix else name
        case "p":
            return str(where)
        case _:
            return None
