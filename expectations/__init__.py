"""Holds the rules of every joined table, written once as SQL, and makes Great Expectations suites of them."""

import os

# Great Expectations reads it when it is imported, which only modules of this package do.
os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
