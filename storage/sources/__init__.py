"""Finds, measures and reads what others wrote: files and change data feeds."""
