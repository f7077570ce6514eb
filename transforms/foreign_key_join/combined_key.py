"""Encodes the CombinedKey of KIP-213, foreign key and primary key as one, as bytes and as JSON.

"CombinedKey is serialized as follows: {4-byte foreignKeyLength}{foreignKeySerialized}{primaryKeySerialized}. When
performing the prefix scan ... we simply drop the primary key component."

In the order of unsigned bytes the keys of one foreign key are one range without any others: the length, big-endian,
keeps "1" and "10" apart. In JSON the quotes and brackets do the same, and the prefix ends behind the foreign key ("not
valid json", as the KIP says, but a prefix). `transforms.foreign_key_join.combined_key_bytes` has the same functions for
programs without Spark.

In bytes a key of one column is the text of its value in UTF-8, or the value itself if that is binary. A key of several
columns is a JSON array of these texts (binary in base64). A null foreign key has no CombinedKey: the result is null.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StructType

from transforms.foreign_key_join.combined_key_bytes import JSON_BETWEEN, JSON_END, JSON_START, LENGTH_BYTES


def key_bytes(key: Column, dtype: StructType) -> Column:
    """A key that is a struct, as bytes; null if the key or any part of it is."""
    parts = [key[field.name] for field in dtype]
    if len(dtype) == 1:
        binary = isinstance(dtype[0].dataType, BinaryType)
        return parts[0] if binary else parts[0].cast("string").cast("binary")
    texts = [
        F.base64(part) if isinstance(field.dataType, BinaryType) else part.cast("string")
        for part, field in zip(parts, dtype, strict=True)
    ]
    whole = F.forall(F.array(*texts), lambda text: text.isNotNull())
    return F.when(whole, F.to_json(F.array(*texts)).cast("binary"))


def encode(foreign_key: Column, primary_key: Column) -> Column:
    """The CombinedKey in bytes, of two keys in bytes; null if one of them is."""
    return F.concat(prefix(foreign_key), primary_key)


def prefix(foreign_key: Column) -> Column:
    """The bytes that the CombinedKeys of a foreign key begin with, and no others."""
    length = F.lpad(F.hex(F.octet_length(foreign_key).cast("bigint")), 2 * LENGTH_BYTES, "0")
    return F.concat(F.unhex(length), foreign_key)


def foreign_key_of(combined: Column) -> Column:
    """The foreign key in a CombinedKey in bytes; null for bytes that are none."""
    return F.when(_is_whole(combined), F.substr(combined, F.lit(LENGTH_BYTES + 1), _length(combined)))


def primary_key_of(combined: Column) -> Column:
    """The primary key in a CombinedKey in bytes; null for bytes that are none."""
    start = F.lit(LENGTH_BYTES + 1) + _length(combined)
    return F.when(_is_whole(combined), F.substr(combined, start, F.octet_length(combined)))


def _length(combined: Column) -> Column:
    """How long the foreign key is by its first bytes; bytes of a key never make more than an int."""
    return F.conv(F.hex(F.substr(combined, F.lit(1), F.lit(LENGTH_BYTES))), 16, 10).try_cast("int")


def _is_whole(combined: Column) -> Column:
    has_length = F.octet_length(combined) >= LENGTH_BYTES
    return has_length & (F.octet_length(combined) - LENGTH_BYTES >= _length(combined))


def encode_json(foreign_key: Column, primary_key: Column) -> Column:
    """The CombinedKey as JSON, of two keys that are structs; null if one of them is."""
    return F.concat(json_prefix(foreign_key), _json(primary_key), F.lit(JSON_END))


def json_prefix(foreign_key: Column) -> Column:
    """The text that the CombinedKeys of a foreign key begin with, and no others."""
    return F.concat(F.lit(JSON_START), _json(foreign_key), F.lit(JSON_BETWEEN))


def decode_json(combined: Column, foreign_key: StructType, primary_key: StructType) -> Column:
    """A struct of foreign_key and primary_key, of a CombinedKey as JSON."""
    return F.from_json(combined, StructType().add("foreign_key", foreign_key).add("primary_key", primary_key))


def _json(key: Column) -> Column:
    return F.to_json(key, {"ignoreNullFields": "false"})
