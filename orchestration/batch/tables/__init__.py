"""Applies a batch's records to the declared tables."""
