"""Scores between embeddings: functions `(n, K, D), (m, L, D) -> (n, m)`, one per file."""
