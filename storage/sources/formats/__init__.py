"""Holds one module for each format of change data: what waits, what is in it, and what may be declared of it."""
