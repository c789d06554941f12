"""Scores and embeddings that other programs wrote."""
