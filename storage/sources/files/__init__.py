"""Finds source files by patterns, unpacks and measures them, and keeps them below limits; no JVM."""
