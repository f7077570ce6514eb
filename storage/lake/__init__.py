"""Knows one lake's names, plan, journal and lock, without a JVM."""
