"""Scores between embeddings, one per file: of sets, functions `(n, K, D), (m, L, D) -> (n, m)`."""

from manymatch.similarities.chamfer import chamfer
from manymatch.similarities.cosine import cosine
from manymatch.similarities.cross_attention import cross_attention
from manymatch.similarities.mahalanobis import mahalanobis
from manymatch.similarities.match_probability import match_probability
from manymatch.similarities.max_match import max_match
from manymatch.similarities.mil import mil
from manymatch.similarities.pair_distances import pair_distances
from manymatch.similarities.smooth_chamfer import smooth_chamfer
from manymatch.similarities.top_match import top_match
from manymatch.util.arguments import check_all

__all__ = [
    "chamfer",
    "cosine",
    "cross_attention",
    "mahalanobis",
    "match_probability",
    "max_match",
    "mil",
    "pair_distances",
    "smooth_chamfer",
    "top_match",
]

check_all(globals(), __all__)
