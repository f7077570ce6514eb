"""Says what the file may say: models, types and SQL expressions."""
