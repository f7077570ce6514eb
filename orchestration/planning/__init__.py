"""Decides which input the next batch reads; builds its plan and commits nothing."""
