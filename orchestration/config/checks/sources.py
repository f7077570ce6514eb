"""Checks that a source says what its format needs, and nothing that means nothing in it."""

from collections.abc import Mapping

from lakejoin.orchestration.config.checked_document import Reading
from lakejoin.orchestration.config.problems import KeyPath, is_misspelled
from lakejoin.orchestration.config.schema.source import Source
from lakejoin.storage.sources.formats.source_format import OF_QUERIES, OF_TOPICS, SourceFormat


def check_needed(reading: Reading, source: KeyPath, own: SourceFormat) -> None:
    """Refuse a source that lacks a key of its format, unless an unknown one was meant for it."""
    written, known = [*reading.names(*source)], Source.fields_by_key()
    for name in own.needs:
        if name not in written and not is_misspelled(name, written, known):
            reading.refuse((*source, name), f"required, but not given: {Source.said_of(name)}")


def refuse_keys_of_others(reading: Reading, source: KeyPath, own: SourceFormat) -> None:
    """Refuse what means nothing in the format of a source, or belongs to others."""
    of_topics = OF_TOPICS if "topic" not in own.needs else {}
    of_queries = OF_QUERIES if "url" not in own.needs else {}
    refuse_keys(reading, source, {**own.not_for, **of_topics, **of_queries})


def check_query(reading: Reading, source: KeyPath, own: SourceFormat) -> None:
    """Refuse a query that is not said, or said twice."""
    said = [name for name in ("table", "query") if reading.raw(*source, name) is not None]
    if "url" in own.needs and len(said) != 1:
        what = "say one of the two" if said else "required, but not given: the table or view, or else `query`"
        reading.refuse((*source, "table"), what)


def refuse_keys(reading: Reading, source: KeyPath, not_for: Mapping[tuple[str, ...], str]) -> None:
    """Refuse keys that a source has though they mean nothing there. `not_for`: why, by their paths below the source."""
    for (*parents, name), message in not_for.items():
        if name in reading.names(*source, *parents):
            reading.refuse((*source, *parents, name), message, at_key=True)
