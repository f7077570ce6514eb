"""Configuration, batches, Dagster definitions and the command line: what a user starts."""
