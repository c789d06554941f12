"""Losses: functions that return a scalar, one per file, named after the term in its paper."""
