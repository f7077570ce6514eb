"""Computes results a second time, by another engine and other code, and compares them with what a lake holds."""
