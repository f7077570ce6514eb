"""Turns the text of a source into typed records, or says why not."""
