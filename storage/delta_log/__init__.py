"""Reads what the logs of Delta tables say, without a JVM."""
