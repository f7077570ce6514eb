"""Reads topics of Kafka, and the schemas that a registry has of their values."""
