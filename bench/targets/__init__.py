"""The targets: what is to be reached, the runs that show it, and what the kept results say."""
