"""Joins a stream with a table as KIP-923 does: which records are due, and what each meets."""
