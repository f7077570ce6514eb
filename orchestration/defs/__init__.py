"""Describes a pipeline to Dagster; nothing else imports it."""
