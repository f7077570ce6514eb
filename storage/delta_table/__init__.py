"""Reads one Delta table through Spark, commits to it and maintains it."""
