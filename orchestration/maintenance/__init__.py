"""Folds, compacts and vacuums the tables of a lake where that is due."""
