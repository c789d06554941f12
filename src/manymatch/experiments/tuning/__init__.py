"""Tuning: the settings with which a preset has the best validation rsum, within a budget."""
