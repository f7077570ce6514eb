"""Lays out the table of a store, creates it and writes its puts."""
