"""Opens the tables of a pipeline as stores."""
