"""Scores between embeddings, by family: of sets, functions `(n, K, D), (m, L, D) -> (n, m)`."""

from manymatch.similarities.gaussians import mahalanobis, pair_distances
from manymatch.similarities.matchings import max_match, top_match
from manymatch.similarities.sets import chamfer, match_probability, mil, smooth_chamfer
from manymatch.similarities.vectors import cosine
from manymatch.util.arguments import check_all

__all__ = [
    "chamfer",
    "cosine",
    "mahalanobis",
    "match_probability",
    "max_match",
    "mil",
    "pair_distances",
    "smooth_chamfer",
    "top_match",
]

check_all(globals(), __all__)
