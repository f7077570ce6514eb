"""The rules every joined table keeps, written once as SQL, and the Great Expectations suites made of them."""

import os

# Great Expectations reads it when it is imported, which only modules of this package do.
os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
