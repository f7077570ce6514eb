"""Defines the errors of a lake and its sources, and the parts of messages that several modules share.

Each message says what, where, what was found, what was expected and what to do.

LakejoinError
├── LakeBusy            another run holds the lake
├── LakeUnusable        the lake may not or cannot be read or written
├── LakeInconsistent    a table's log does not fit the plan
├── ConfigurationChanged  the state was built with another configuration
├── CatalogUnusable     a catalog cannot have a table that is to be registered there
├── SourceError         a source file cannot be used; its kinds are below
├── JavaNotFound        no Java that Spark accepts (see storage.spark.java)
└── JarsNotFound        Delta's JARs could not be fetched (see storage.spark.jars)

No message shows the credentials of a URI: `without_credentials` takes them out.
"""

import re

_CREDENTIALS = re.compile(r"(?<!hdfs)://[^/]*:.*@|(?<=hdfs)://[^/]*:(?![0-9]{1,5}/).*@", re.IGNORECASE)
"""A secret key may hold slashes; of the file systems that we know only HDFS has ports, which are no secrets."""
_PARAMETERS = re.compile(r"([?&](?:user|password|sslpassword)=)[^&\s]*", re.IGNORECASE)
"""Of the URL of a database."""
_MARKS = re.compile(r"\x1b\[\d+m|↳")
"""How delta-rs sets off each cause from the next."""
_S3 = re.compile(r"<Code>(.*?)</Code>.*?<Message>(.*?)</Message>", re.DOTALL)
_MACHINE_ROLE = "169.254.169.254"
"""Where an SDK asks last: the machine's own role, on Amazon's machines."""
REPAIRED = ("rows", "versions")
"""Tables of a declared table that are folded from its changes."""


def has_credentials(uri: str) -> bool:
    """Whether a URI names a user and a password, as `s3a://KEY:SECRET@bucket`."""
    return _CREDENTIALS.search(uri) is not None


def without_credentials(text: str) -> str:
    """The text as a message may show it: `://…@` in the place of users and passwords."""
    return _PARAMETERS.sub(r"\1…", _CREDENTIALS.sub("://…@", text))


class LakejoinError(Exception):
    """Base of every error that a user of Lakejoin can act on.

    Its message is one line, or as many as it was made of: a line's end that a name or value brings along makes none.
    """

    def __init__(self, *lines: str) -> None:
        """Make the message of its lines."""
        super().__init__("\n".join(lines))
        self.lines = lines


class LakeBusy(LakejoinError):
    """Another process works on the lake; wait for it, or end it."""


class LakeUnusable(LakejoinError):
    """The lake may not or cannot be read or written: permissions, credentials, disk, network."""


class LakeInconsistent(LakejoinError):
    """A table was restored, rewritten or lost behind the back of the plan: stop before more is built on it."""


class ConfigurationChanged(LakejoinError):
    """The configuration no longer fits the state that was built with it."""


class CatalogUnusable(LakejoinError):
    """A table cannot be registered: the catalog forgets it, has another of its name, or does not answer."""


def reason_of(error: Exception) -> str:
    """Return the reason of an error without its stack of causes; of S3's answers no more than code and message."""
    text = str(error)
    if answer := _S3.search(text):
        return f"{answer[1]}: {answer[2]}"
    if _MACHINE_ROLE in text:
        return "no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the machine a role"
    causes = [line for line in (_MARKS.sub("", line).strip() for line in text.splitlines()) if line]
    chained = "↳" in text
    return f"{causes[0]}: {causes[-1]}" if chained else (causes or [type(error).__name__])[0]


def remedy(table: str) -> str:
    """Return the way on, as a sentence. `table`: a path, or the name below the lake."""
    match table.rstrip("/").split("/")[-3:]:
        case ["joins", name, _]:
            return _repair(name, "the log of changes unless it is a join of a stream")
        case ["tables", name, kind] if kind in REPAIRED:
            return _repair(name, "its log of changes")
    return "Restore it from a copy, or load the sources anew into a new lake."


def file_lost(table: str, name: str, found: str = "") -> LakeInconsistent:
    """Return the error for a data file that cannot be read. `found`: what is the matter with it, if known."""
    why = f" ({found})" if found else ""
    return LakeInconsistent(
        f"{table}: {name} is gone or damaged{why}, which the table's log names; expected the file as it was written. A "
        f"vacuum with another retention, a broken disk or somebody's hand removed it. {remedy(table)}"
    )


def _repair(name: str, source: str) -> str:
    return f"Run `lakejoin repair FILE {name}`, which makes it anew from {source}, or restore it from a copy."


class SourceError(LakejoinError):
    """A source file, or the place where it should be, cannot be used."""


class SourceNotFound(SourceError):
    """The file or its directory is not there; check the path and whether it was removed."""


class SourceRefused(SourceError):
    """What the path found is nothing that Lakejoin reads: a symlink, a date that does not exist."""


class SourceUnreadable(SourceError):
    """The file or directory is there, but may or can not be read: permissions, credentials, disk, network."""


class SourceChanged(SourceError):
    """Something before the end of what was read is different now; only lines behind it may be added."""


class SourceTooLarge(SourceError):
    """The file, a line of it or what it unpacks to is beyond the limits of its source."""


class SourceTrimmed(SourceError):
    """A part of a change feed was removed before it was read: what changed since cannot be told any more."""


class SourceBroken(SourceError):
    """The bytes are not what the format says: a torn gzip or Parquet file, another compression."""
