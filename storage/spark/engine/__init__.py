"""Keeps a JVM for the runs that follow, which start in a warm one: a process of its own that ends when it is idle."""
