"""Creates the table of a store, and writes its puts."""
