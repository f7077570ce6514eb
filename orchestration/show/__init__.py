"""Reads what `lakejoin show` and `lakejoin status` print; writes nothing."""
