"""Readers of files that may be damaged or hostile, and writers of files that reveal damage."""
