"""Proposes a configuration file from samples: tables, columns with their types, keys, sequences, joins."""
