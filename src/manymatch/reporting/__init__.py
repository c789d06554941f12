"""Leaderboard and report: reads result files alone, never a model or a data set."""
