"""The command line: every stage of dvc.yaml is a subcommand that runs alone."""
