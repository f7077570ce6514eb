"""Reads a batch's stream records and joins them with their tables."""
