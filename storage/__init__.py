"""Reads and writes all that lies outside the process: Spark's session, files, Delta tables."""
