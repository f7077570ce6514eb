"""Reads, commits and maintains one Delta table through Spark."""
