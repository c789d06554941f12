"""`python -m manymatch`: the command line."""

from manymatch.cli.commands import main

main()
