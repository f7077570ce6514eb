"""Turns the records of a table into changes, current rows and versions."""
