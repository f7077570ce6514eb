"""Starts the one Spark session with its Java and JARs, and keeps frames that are computed once."""
