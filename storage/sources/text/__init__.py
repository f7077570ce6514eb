"""Reads lines, whole texts of JSON and CSV."""
