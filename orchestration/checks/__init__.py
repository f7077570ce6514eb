"""Holds the rules of expectations over the tables of a lake."""
