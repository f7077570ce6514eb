"""Checks that a lake agrees with the configuration and its own journal; refuses, and writes no row."""
