"""Starts batches: run, retry, migrate, repair, abandon."""
