"""Gives the tables of a lake as Spark frames, at the versions that a plan pins, and folds logs into bases."""
