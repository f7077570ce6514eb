"""Starts what a user asks for: configuration, batches, Dagster definitions and the command line."""
