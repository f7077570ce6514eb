"""Turns DataFrames into DataFrames by pure functions, without session, path, clock or action."""
