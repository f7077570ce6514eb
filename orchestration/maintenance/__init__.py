"""Maintains the tables of a lake: folds, compacts and vacuums them where that is due."""
