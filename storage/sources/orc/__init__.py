"""Reads ORC files, and says how large they become."""
