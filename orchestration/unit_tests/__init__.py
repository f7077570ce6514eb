"""Runs what a file says of a pipeline: records that are given, and the rows that are expected to come of them."""
