"""`python -m manymatch`: the command line."""

from manymatch.cli import main

main()
