"""Finds files and change data feeds that others wrote, measures them and reads them."""
