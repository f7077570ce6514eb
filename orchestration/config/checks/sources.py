"""Checks that a source says where it is."""

from orchestration.config.checked_document import Reading
from orchestration.config.problems import KeyPath, is_misspelled
from orchestration.config.schema.source import Source
from storage.sources.formats.source_format import SourceFormat


def check_needed(reading: Reading, source: KeyPath, own: SourceFormat) -> None:
    """Refuse a source that lacks a key of its format, unless an unknown one was meant for it."""
    written, known = [*reading.names(*source)], Source.fields_by_key()
    for name in own.needs:
        if name not in written and not is_misspelled(name, written, known):
            reading.refuse((*source, name), f"required, but not given: {Source.said_of(name)}")
