"""Runs the flights demo and compares it with PostgreSQL."""
