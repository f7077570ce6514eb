"""Reads Avro files, and says how large they become."""
