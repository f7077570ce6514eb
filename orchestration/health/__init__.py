"""Finds what on this machine would keep a run from its work, without starting Spark."""
