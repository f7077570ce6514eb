"""Holds the words that every stage shares: specifications, column names, hashes, event time, join sides."""
