"""Reads Parquet files, and says how large they become."""
