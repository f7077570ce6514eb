"""Starts the command line as `python -m orchestration.cli`, where its script is not installed."""

from orchestration.cli import main

main()
