"""Holds the words that every stage shares: specifications, column names, hashes, keys, event time."""
