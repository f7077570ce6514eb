"""Carries one batch from its plan to its publication."""
