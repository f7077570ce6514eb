"""Errors of a lake; each says what, where, what was found, what was expected and what to do.

LakejoinError
├── LakeBusy            another run holds the lake
├── LakeUnusable        the lake may not or cannot be read or written
├── LakeInconsistent    a table's log does not fit the plan
├── ConfigurationChanged  the state was built with another configuration
├── SourceError         a source file cannot be used (see storage.source_errors)
├── JavaNotFound        no Java that Spark accepts (see storage.java)
└── JarsNotFound        Delta's JARs could not be fetched (see storage.jars)
"""


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
