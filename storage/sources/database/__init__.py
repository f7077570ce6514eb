"""Dumps tables and queries of a database."""
