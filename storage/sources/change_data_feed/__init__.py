"""Reads the Change Data Feed of a Delta table."""
