"""Everything that touches Spark's session, files and Delta tables; it knows the transforms and nothing above it."""
