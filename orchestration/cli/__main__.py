"""`python -m orchestration.cli`: the command line where its script is not installed."""

from orchestration.cli import main

main()
