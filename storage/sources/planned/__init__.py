"""Holds which parts of a source a batch reads, and which were read before."""
