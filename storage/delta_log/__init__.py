"""Reads what the logs of Delta tables say and commits bookkeeping, without a JVM."""
