"""Gives the tables of a lake as Spark frames: pinned reads, the joined table, folds."""
