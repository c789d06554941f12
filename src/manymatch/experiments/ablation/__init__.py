"""Ablations: a preset trained again and again with one thing changed, as one table."""
