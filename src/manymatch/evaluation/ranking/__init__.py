"""Exact ranks and best items, from scores that come block by block."""
