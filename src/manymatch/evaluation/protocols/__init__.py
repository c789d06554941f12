"""The evaluation protocols: what counts as a correct answer."""
