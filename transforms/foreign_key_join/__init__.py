"""Joins two tables by a foreign key as KIP-213 does: send, answer, resolve, emit."""
