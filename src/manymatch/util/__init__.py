"""Files, locks, processes, progress, and readers of files that may be damaged or hostile."""
