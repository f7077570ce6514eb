"""The race: contenders take turns at the same batches, and what each costs is measured."""
