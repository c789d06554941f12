"""Readers of files from elsewhere, which may be damaged or hostile."""
