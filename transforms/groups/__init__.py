"""Keeps the groups of rows, and what is made of each group, up to date."""
