"""Starts the command line as `python -m lakejoin`, where its script is not installed."""

from lakejoin.orchestration.cli import main

main()
