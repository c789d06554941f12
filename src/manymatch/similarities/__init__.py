"""Scores between embeddings: functions `(n, K, D), (m, L, D) -> (n, m)`, one per file."""

from manymatch.similarities.chamfer import chamfer
from manymatch.similarities.cosine import cosine
from manymatch.similarities.match_probability import match_probability
from manymatch.similarities.max_match import max_match
from manymatch.similarities.mil import mil
from manymatch.similarities.smooth_chamfer import smooth_chamfer
from manymatch.similarities.top_match import top_match

__all__ = [
    "chamfer",
    "cosine",
    "match_probability",
    "max_match",
    "mil",
    "smooth_chamfer",
    "top_match",
]
