"""Reads files in the order of a key, lazily and without a JVM."""
