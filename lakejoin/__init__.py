"""Keeps joins of change data up to date on a lakehouse."""
