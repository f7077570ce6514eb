"""Brings the foreign-key joins of a batch up to date."""
