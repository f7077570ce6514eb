"""Errors of a lake; each says what, where, what was found, what was expected and what to do.

LakejoinError
├── LakeBusy            another run holds the lake
├── LakeUnusable        the lake may not or cannot be read or written
├── LakeInconsistent    a table's log does not fit the plan
├── ConfigurationChanged  the state was built with another configuration
├── SourceError         a source file cannot be used (see storage.source_errors)
├── JavaNotFound        no Java that Spark accepts (see storage.spark.java)
└── JarsNotFound        Delta's JARs could not be fetched (see storage.spark.jars)
"""

import re

_CREDENTIALS = re.compile(r"(?<!hdfs)://[^/]*:.*@|(?<=hdfs)://[^/]*:(?![0-9]{1,5}/).*@", re.IGNORECASE)
"""A secret key may hold slashes; of the file systems that we know only HDFS has ports, which are no secrets."""


def has_credentials(uri: str) -> bool:
    """Whether a URI names a user and a password, as `s3a://KEY:SECRET@bucket`."""
    return _CREDENTIALS.search(uri) is not None


def without_credentials(text: str) -> str:
    """The text as a message may show it: `://…@` in the place of users and passwords."""
    return _CREDENTIALS.sub("://…@", text)


class LakejoinError(Exception):
    """Base of every error that a user of Lakejoin can act on."""


class LakeBusy(LakejoinError):
    """Another process works on the lake; wait for it, or end it."""


class LakeUnusable(LakejoinError):
    """The lake may not or cannot be read or written: permissions, credentials, disk, network."""


class LakeInconsistent(LakejoinError):
    """A table was restored, rewritten or lost behind the back of the plan: stop before more is built on it."""


class ConfigurationChanged(LakejoinError):
    """The configuration no longer fits the state that was built with it."""
